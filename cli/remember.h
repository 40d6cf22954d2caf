/* What a recorded run measured of each device's charges, into the file of remembered charges (planner/reserve.h). One thread. */
#ifndef TENURE_CLI_REMEMBER_H
#define TENURE_CLI_REMEMBER_H

#include "planner/reserve.h"

/* Reads the run folder or journal `run` and remembers one measurement a device whose memory was read, in the file `path`. Prints a line for each
 * on standard output. Exit code of the command: TN_EXIT_HOLDS; TN_EXIT_USAGE where run or file cannot be used; TN_EXIT_INCONCLUSIVE where
 * the run measured nothing that may be remembered: it dropped events, failed before it served, or read no device. */
int cli_remember(const char *command, const char *run, const char *path);

#endif
