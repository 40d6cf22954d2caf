/* The order in which the engine comes up, serves and goes down.
 *
 * Each phase prints one line with the device memory in use. Main thread. */
#ifndef ENGINE_APP_PHASES_H
#define ENGINE_APP_PHASES_H

#include "runtime/runtime.h"

/* Prints the phase line: used, free and the change since the last one, in MiB. */
void phase_mark(struct engine *eng, const char *name);

/* Runs every phase up to and including `until`, or all of them if it is NULL. */
void phases_run(struct server *srv, const char *until);

#endif
