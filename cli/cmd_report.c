/* tenure report: prints a run folder, or one journal, as text or JSON. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "report/report.h"
#include "report/report_symbol.h"

const char cmd_report_help[] =
    "tenure report RUN [--json] [--at MARK] [--by WHAT] [--top N] [--full] [-o FILE]\n"
    "\n"
    "RUN is a folder that tenure record (or TENURE_RUN) filled, or a single journal (*.tnj).\n"
    "\n"
    "  --json              one JSON document with exact bytes instead of text\n"
    "  --at MARK           the state at a mark (its text, or its number from 1) or when a phase began (planning,\n"
    "                      serving), instead of at the end\n"
    "  --by WHAT           a table by library, site, kind or phase, each of which adds up to the same total, instead of\n"
    "                      sites with their stacks (text only)\n"
    "  --top N             show N sites or rows, those with the most memory (default 20; text only)\n"
    "  --full              whole stacks and names, all coverage rows (text only)\n"
    "  --debug-dir DIR     look for separate debug files in DIR/.build-id before /usr/lib/debug/.build-id\n"
    "  --symbol-seconds S  give up on names, files and lines after S seconds (default 5)\n"
    "  --symbol-mib N      read no debug information of a module larger than N MiB (default 512)\n"
    "  -o FILE             write to FILE, which must not exist yet; - is standard output\n"
    "\n"
    "Exit code 0; 2 for wrong arguments or a file that is no readable journal; 3 where the folder holds no\n"
    "journal, or where a journal or a part of one is missing from the report (a warning names it). Events that the\n"
    "recorded program dropped do not change the exit code, since the report is all that its journals hold: a warning\n"
    "at the head of the text counts them, and in JSON run.complete is false.\n";

typedef struct report_options {
    const char *run, *output;
    tn_report_options text;
    tn_report_load_options load;
    tn_symbol_options symbols;
    int json;
} report_options;

/* A number of the option's value; 0 where it is none. */
static int parse_number(const char *text, double most, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return text[0] >= '0' && text[0] <= '9' && strpbrk(text, "xXpPnN") == NULL && *end == 0 && !errno && *out <= most;
}

static int parse_by(const char *text, tn_report_by *out)
{
    static const struct { const char *name; tn_report_by by; } names[] = {
        {"library", TN_BY_LIBRARY}, {"site", TN_BY_SITE}, {"kind", TN_BY_KIND}, {"phase", TN_BY_PHASE}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i].name) == 0) {
            *out = names[i].by;
            return 1;
        }
    }
    return 0;
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, report_options *o)
{
    enum { JSON = 256, TOP, FULL, AT, BY, DEBUG_DIR, SECONDS, MIB }; /* no letters of their own */
    static const struct option options[] = {
        {"json", no_argument, NULL, JSON}, {"top", required_argument, NULL, TOP},    {"full", no_argument, NULL, FULL},
        {"at", required_argument, NULL, AT}, {"by", required_argument, NULL, BY}, {"debug-dir", required_argument, NULL, DEBUG_DIR},
        {"symbol-seconds", required_argument, NULL, SECONDS}, {"symbol-mib", required_argument, NULL, MIB},
        {"help", no_argument, NULL, 'h'}, {"output", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0},
    };
    opterr = 0;
    int c;
    while ((c = getopt_long(argc, argv, ":ho:", options, NULL)) != -1) {
        char *end;
        double number;
        switch (c) {
        case JSON:
            o->json = 1;
            break;
        case FULL:
            o->text.full = 1;
            break;
        case 'o':
            o->output = optarg;
            break;
        case TOP:
            errno = 0;
            o->text.top = strtoul(optarg, &end, 10);
            if (errno || *end || optarg[0] < '0' || optarg[0] > '9')
                return cli_fail("report", "--top needs a number, not %s", optarg);
            break;
        case AT:
            o->load.at = optarg;
            break;
        case BY:
            if (!parse_by(optarg, &o->text.by))
                return cli_fail("report", "--by takes library, site, kind or phase, not %s", optarg);
            break;
        case DEBUG_DIR:
            o->symbols.debug_dir = optarg;
            break;
        case SECONDS:
            if (!parse_number(optarg, 1e6, &o->symbols.seconds))
                return cli_fail("report", "--symbol-seconds needs a number of seconds, not %s", optarg);
            break;
        case MIB:
            if (!parse_number(optarg, 1e6, &number))
                return cli_fail("report", "--symbol-mib needs a number of MiB, not %s", optarg);
            o->symbols.debug_bytes = (uint64_t)(number * 1048576.0);
            break;
        case 'h':
            fputs(cmd_report_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("report", argc, argv, c);
        }
    }
    if (optind == argc)
        return cli_fail("report", "no run folder given (see tenure help report)");
    if (optind + 1 < argc)
        return cli_fail("report", "one run folder at a time: %s is too much", argv[optind + 1]);
    o->run = argv[optind];
    return -1;
}

static FILE *open_output(const char *path)
{
    if (!path || strcmp(path, "-") == 0)
        return stdout;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out)
        cli_fail("report", errno == EEXIST ? "%s exists already and is not overwritten" : "%s cannot be created: %s", path, strerror(errno));
    return out;
}

int cmd_report(int argc, char **argv)
{
    report_options o = {.text = {.top = 20}, .symbols = {.seconds = TN_SYMBOL_SECONDS, .debug_bytes = TN_SYMBOL_DEBUG_BYTES}};
    o.load.symbols = &o.symbols;
    int code = parse(argc, argv, &o);
    if (code >= 0)
        return code;
    char message[TN_REPORT_MESSAGE];
    tn_report *report;
    tn_error error = tn_report_load_with(o.run, &o.load, &report, message);
    if (error != TN_OK) {
        cli_fail("report", "%s", message);
        return error == TN_E_EMPTY ? TN_EXIT_INCONCLUSIVE : TN_EXIT_USAGE;
    }
    code = TN_EXIT_USAGE;
    FILE *out = open_output(o.output);
    if (out) {
        int failed = o.json ? tn_report_json(report, out) : tn_report_text(report, &o.text, out);
        if (out != stdout && fclose(out) != 0)
            failed = -1;
        if (failed) {
            cli_fail("report", "%s cannot be written: %s", out == stdout ? "standard output" : o.output, strerror(errno));
            if (out != stdout)
                unlink(o.output); /* ours: it was created exclusively */
        } else {
            code = tn_report_unread(report) ? TN_EXIT_INCONCLUSIVE : TN_EXIT_HOLDS;
        }
    }
    if (code == TN_EXIT_INCONCLUSIVE) {
        const char *warning;
        for (size_t i = 0; (warning = tn_report_warning(report, i)); i++)
            cli_warn("report", "%s", warning);
    }
    tn_report_free(report);
    return code;
}
