/* The XDG base directories' state folder. */
#include "cli/state_folder.h"

#include <stdio.h>
#include <stdlib.h>

int cli_state_path(const char *name, char *out, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (state && state[0] == '/')
        length = snprintf(out, size, "%s/tenure/%s", state, name);
    else if (home && home[0] == '/')
        length = snprintf(out, size, "%s/.local/state/tenure/%s", home, name);
    return length >= 0 && (size_t)length < size ? 0 : -1;
}
