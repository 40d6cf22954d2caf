/* The command's parts. One process, one thread; each cmd_* function owns what it opens and returns the exit
 * code of the whole command. Messages go to standard error, one sentence a line, beginning with "tenure". */
#ifndef TENURE_CLI_CLI_H
#define TENURE_CLI_CLI_H

#define TN_CLI_VERSION "0.1.0"

/* Exit codes of the command itself; `tenure record` and `tenure run` else return the program's own. */
enum { TN_EXIT_HOLDS = 0, TN_EXIT_FALLS_SHORT = 1, TN_EXIT_USAGE = 2, TN_EXIT_INCONCLUSIVE = 3 };

/* argv[0] is the name of the command ("record"). */
int cmd_record(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_soak(int argc, char **argv);
int cmd_census(int argc, char **argv);
int cmd_plan(int argc, char **argv);
/* `tenure plan --dsa FILE`, with all of plan's words. */
int tn_cmd_plan_dsa(int argc, char **argv);
/* `tenure plan --demand FILE`, likewise. */
int tn_cmd_plan_demand(int argc, char **argv);
/* `tenure plan RUN...`. */
int tn_cmd_plan_runs(int argc, char **argv);
int cmd_verify(int argc, char **argv);
/* `tenure plan --remember RUN`, likewise. */
int tn_cmd_plan_remember(int argc, char **argv);

extern const char cmd_record_help[], cmd_run_help[], cmd_report_help[], cmd_ctl_help[], cmd_soak_help[], cmd_census_help[], cmd_plan_help[],
    cmd_verify_help[];

/* One line to standard error: "tenure COMMAND: " and the sentence (printf). Returns TN_EXIT_USAGE. */
int cli_fail(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same as a warning: "tenure COMMAND: warning: ...". */
void cli_warn(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* After getopt_long returned '?' or ':' (opterr = 0, optstring beginning with ':' or "+:"): names the option. */
int cli_bad_option(const char *command, int argc, char **argv, int what);

#endif
