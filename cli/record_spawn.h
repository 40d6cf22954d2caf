/* Starts the recorded program and waits for it. The program gets the standard streams, the signal dispositions and the
 * mask that the command was given. One thread, one program at a time. */
#ifndef TENURE_CLI_RECORD_SPAWN_H
#define TENURE_CLI_RECORD_SPAWN_H

#include <sys/types.h>

/* What is done beside; members may be NULL. */
typedef struct tn_spawn_hooks {
    int (*in_child)(void *arg);             /* in the forked child, before exec: 0, or an errno that ends it */
    int (*started)(void *arg, pid_t program); /* in this process, after the fork: 0, or an errno: then the program is killed */
    int (*tick)(void *arg);                 /* about every 20 ms while the program runs; 1: no more */
    void *arg;
} tn_spawn_hooks;

/* Runs argv with the environment as it is now and forwards signals sent to this process. 0 with *wait_status as
 * waitpid gives it; or an errno when it could not be started (then nothing of it ran). */
int tn_record_spawn(char **argv, const tn_spawn_hooks *hooks, int *wait_status);

#endif
