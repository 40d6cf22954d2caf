/* By what a plan knows the program that an interpreter runs. No state, no memory; any thread. */
#ifndef TENURE_PLANNER_PROGRAM_SCRIPT_H
#define TENURE_PLANNER_PROGRAM_SCRIPT_H

#include <stddef.h>

#define TN_PROGRAM_SCRIPT 2304 /* room enough for what a journal's command line can hold */

/* The script by which an interpreter's command line is known: "run.py", "-m module", "-c". `exe`: the executable's path or name; `cmdline`:
 * arguments that each end in a NUL, `bytes` in all, of no more than a journal keeps (tn_journal_header.cmdline), so that whoever asks gets the
 * same answer. 1 with the script in `out`; 0: `exe` is no interpreter, there is no script, or it does not fit. */
int tn_program_script(const char *exe, const char *cmdline, size_t bytes, char *out, size_t room);

#endif
