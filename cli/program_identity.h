/* Who a program will be once it runs, found before it is started: the executable that the kernel loads, its build-id, the script that it interprets.
 * Plain values in the caller's struct; one thread. */
#ifndef TENURE_CLI_PROGRAM_IDENTITY_H
#define TENURE_CLI_PROGRAM_IDENTITY_H

#include <limits.h>

#include "planner/program_script.h"

typedef struct tn_program_identity {
    char exe[PATH_MAX];    /* as /proc/self/exe will say it */
    char build_id[64];     /* "": none */
    char script_text[TN_PROGRAM_SCRIPT];
    const char *script;    /* script_text, or NULL: no interpreter's script */
    int uses_cuda;         /* it names CUDA's runtime or driver library itself. 0 says little: its libraries may */
} tn_program_identity;

/* `path`: the file that argv[0] stands for. A script's interpreter is followed, through env as well. */
void tn_program_identify(const char *path, char **argv, tn_program_identity *out);

#endif
