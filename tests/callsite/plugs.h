/* Where the tests' small libraries lie: $TENURE_TEST_PLUGS, or tests/callsite below the current folder (the runfiles' root, where Bazel starts
 * tests). One thread. */
#ifndef TENURE_TESTS_PLUGS_H
#define TENURE_TESTS_PLUGS_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* An absolute path in static storage, valid until the next call. */
static inline const char *plug_path(const char *file)
{
    static char path[2048];
    char here[1024];
    const char *dir = getenv("TENURE_TEST_PLUGS");
    if (dir)
        snprintf(path, sizeof path, "%s/%s", dir, file);
    else
        snprintf(path, sizeof path, "%s/tests/callsite/%s", getcwd(here, sizeof here) ? here : ".", file);
    return path;
}

#endif
