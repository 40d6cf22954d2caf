/* Where the command keeps what it remembers between runs: $XDG_STATE_HOME/tenure, else ~/.local/state/tenure. The environment is read at each
 * call; one thread. */
#ifndef TENURE_CLI_STATE_FOLDER_H
#define TENURE_CLI_STATE_FOLDER_H

#include <stddef.h>

/* The path of the file `name` in that folder, which need not exist. 0; -1 where neither variable names an absolute path, as a relative one
 * means another place in every folder, or where the path does not fit. */
int cli_state_path(const char *name, char *out, size_t size);

#endif
