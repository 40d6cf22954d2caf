/* Looks at the program that `tenure record` is to start, before it is started. Owns nothing; paths go into the
 * caller's buffers. */
#ifndef TENURE_CLI_RECORD_TARGET_H
#define TENURE_CLI_RECORD_TARGET_H

#include <limits.h>

/* Why a preload cannot reach a program. */
typedef enum tn_target_cover {
    TN_TARGET_COVERED = 0,
    TN_TARGET_STATIC,    /* no dynamic loader */
    TN_TARGET_PRIVILEGED, /* set-user-ID, set-group-ID or file capabilities: the loader ignores LD_PRELOAD */
    TN_TARGET_FOREIGN,   /* another architecture or word size */
} tn_target_cover;

/* Finds the file that execvp(name) would start. 0 with the path in out; else an errno: ENOENT (no such command),
 * EACCES (there, but not executable), EISDIR. */
int tn_target_find(const char *name, char out[PATH_MAX]);

/* Whether the dynamic loader will put a preload into that program. Of a script its interpreter counts, whose path is
 * then in `program`; else `program` is a copy of path. A file that cannot be read counts as covered. */
tn_target_cover tn_target_check(const char *path, char program[PATH_MAX]);

/* A phrase that completes "PROGRAM ..." for everything but TN_TARGET_COVERED. */
const char *tn_target_text(tn_target_cover cover);

#endif
