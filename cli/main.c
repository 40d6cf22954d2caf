/* The command `tenure`: finds the sub-command, prints help. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const char main_help[] =
    "tenure: records the CUDA memory of an unmodified program and reports it\n"
    "\n"
    "  tenure record -o RUN -- CMD...    run CMD and record every CUDA memory call into the folder RUN\n"
    "  tenure report RUN                 print what was recorded\n"
    "  tenure run --plan PLAN -o RUN -- CMD...   run CMD with its allocations placed by a plan\n"
    "  tenure soak -- CMD...             run CMD until it serves, and say where it allocates meanwhile\n"
    "  tenure ctl PID|RUN phase NAME     tell a process that is being recorded its phase; mark TEXT sets a mark\n"
    "  tenure census SRC...              count the allocation calls in a source tree; allowlist, join with runs\n"
    "  tenure plan RUN... -o PLAN        make a plan from runs: where each site's memory comes from, and how much there is\n"
    "  tenure plan --demand FILE         what an engine will hold, within a budget: the arithmetic, and what frees how much\n"
    "  tenure plan --dsa FILE            pack a MiniMalloc file: offsets for buffers with known lifetimes\n"
    "  tenure verify PLAN RUN            replay a run against a plan: does every request find room?\n"
    "\n"
    "  tenure help COMMAND               the options of a command\n"
    "  tenure --version\n"
    "\n"
    "Exit codes: record and run give the program's own; report gives 0, or 3 where the journals do not suffice;\n"
    "checks give 0 where they hold, 1 where they fall short, 3 where they cannot say.\n"
    "2 means a wrong argument or an unusable file, with one sentence on standard error.\n";

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"record", cmd_record, cmd_record_help},
    {"run", cmd_run, cmd_run_help},
    {"report", cmd_report, cmd_report_help},
    {"ctl", cmd_ctl, cmd_ctl_help},
    {"soak", cmd_soak, cmd_soak_help},
    {"census", cmd_census, cmd_census_help},
    {"plan", cmd_plan, cmd_plan_help},
    {"verify", cmd_verify, cmd_verify_help},
};

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static void print(const char *command, const char *kind, const char *format, va_list args)
{
    char line[4096];
    vsnprintf(line, sizeof(line), format, args);
    fprintf(stderr, "tenure%s%s: %s%s\n", command ? " " : "", command ? command : "", kind, line);
}

int cli_fail(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(command, "", format, args);
    va_end(args);
    return TN_EXIT_USAGE;
}

void cli_warn(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(command, "warning: ", format, args);
    va_end(args);
}

int cli_bad_option(const char *command, int argc, char **argv, int what)
{
    /* optopt is a short option's letter; of a long one getopt has already stepped past the word. */
    const char *word = optind - 1 > 0 && optind - 1 < argc ? argv[optind - 1] : "";
    if (optopt && optopt < 256) {
        if (what == ':')
            return cli_fail(command, "option -%c needs a value (see tenure help %s)", optopt, command);
        if (strncmp(word, "--", 2) != 0)
            return cli_fail(command, "unknown option -%c (see tenure help %s)", optopt, command);
    }
    if (what == ':')
        return cli_fail(command, "option %s needs a value (see tenure help %s)", word, command);
    if (optopt)
        return cli_fail(command, "option %s takes no value (see tenure help %s)", word, command);
    return cli_fail(command, "unknown option %s (see tenure help %s)", word, command);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return cli_fail(NULL, "no command given (see tenure --help)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        const struct command *command = argc > 2 ? find(argv[2]) : NULL;
        if (argc > 2 && !command)
            return cli_fail(NULL, "there is no command %s (see tenure --help)", argv[2]);
        fputs(command ? command->help : main_help, stdout);
        return fflush(stdout) == 0 ? TN_EXIT_HOLDS : cli_fail(NULL, "standard output cannot be written");
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("tenure " TN_CLI_VERSION);
        return fflush(stdout) == 0 ? TN_EXIT_HOLDS : cli_fail(NULL, "standard output cannot be written");
    }
    const struct command *command = find(argv[1]);
    if (!command)
        return cli_fail(NULL, argv[1][0] == '-' ? "unknown option %s (see tenure --help)" : "there is no command %s (see tenure --help)",
                        argv[1]);
    return command->run(argc - 1, argv + 1);
}
