/* The control blocks that a person means by a process id or a run folder. A tn_control_set owns its clients until tn_control_set_close;
 * one thread. */
#ifndef TENURE_CLI_CONTROL_FIND_H
#define TENURE_CLI_CONTROL_FIND_H

#include <stddef.h>
#include <time.h>

#include "ledger/control_client.h"

typedef struct tn_control_set {
    tn_control_client *each;
    size_t count;
    size_t gone;       /* blocks whose process is there no longer */
    size_t unreadable; /* blocks that could not be opened */
    struct timespec changed; /* of the folder, when it was read; tn_control_refresh's */
} tn_control_set;

#define TN_CONTROL_MESSAGE 4400

/* All living processes that record into `folder`. 0, also where there is none; -1 with a sentence where it cannot be read. */
int tn_control_find_run(const char *folder, tn_control_set *out, char message[TN_CONTROL_MESSAGE]);
/* Makes *set, all zeros at first, hold the living processes that record into `folder`. Cheap where no journal has come since the last
 * call with this set: then only whether the processes are there is looked at. 0, or -1 where the folder cannot be read. */
int tn_control_refresh(const char *folder, tn_control_set *set);
/* The block that the process has mapped. 0, or -1 with a sentence. */
int tn_control_find_pid(long pid, tn_control_set *out, char message[TN_CONTROL_MESSAGE]);
void tn_control_set_close(tn_control_set *set);

#endif
