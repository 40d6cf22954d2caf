/* Which rows of the API table a person means by a function's name: the name itself and its variants (cudaGraphLaunch is also
 * cudaGraphLaunch_ptsz, cuMemAlloc also cuMemAlloc_v2). Pure. */
#ifndef TENURE_PHASEGUARD_CALL_NAME_H
#define TENURE_PHASEGUARD_CALL_NAME_H

#include <string.h>

/* `name` is not ended by a NUL but by its length. */
static inline int tn_call_is_named(const char *row, const char *name, size_t length)
{
    if (strncmp(row, name, length) != 0)
        return 0;
    const char *rest = row + length;
    if (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '0' && rest[2] <= '9')
        rest += 3;
    return rest[0] == 0 || strcmp(rest, "_ptsz") == 0 || strcmp(rest, "_ptds") == 0;
}

#endif
