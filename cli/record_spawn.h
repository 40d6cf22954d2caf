/* Starts the recorded program and waits for it. The program gets the standard streams, the signal dispositions and the
 * mask that the command was given. One thread, one program at a time. */
#ifndef TENURE_CLI_RECORD_SPAWN_H
#define TENURE_CLI_RECORD_SPAWN_H

/* Runs argv with the environment as it is now and forwards signals sent to this process. 0 with *wait_status as
 * waitpid gives it; or an errno when it could not be started (then nothing of it ran). */
int tn_record_spawn(char **argv, int *wait_status);

#endif
