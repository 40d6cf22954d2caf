/* The other side of a control block: puts commands into running processes and reads what they have not taken. A tn_control_client owns
 * its mapping and descriptor until tn_control_close. One thread a client; clients of several threads or programs may use one block
 * at the same time. */
#ifndef TENURE_LEDGER_CONTROL_CLIENT_H
#define TENURE_LEDGER_CONTROL_CLIENT_H

#include <sys/types.h>

#include "ledger/control_format.h"
#include "ledger/tn_error.h"

typedef struct tn_control_client {
    tn_control *block; /* NULL: not open */
    int fd, writable;
    dev_t dev;
    ino_t ino;
} tn_control_client;

/* Opens the block at `path`, for reading only unless `writable`. TN_E_OPEN, TN_E_FORMAT, TN_E_VERSION, TN_E_TRUNCATED, TN_E_NOMEM. */
TN_MUST_USE tn_error tn_control_open(const char *path, int writable, tn_control_client *out);
void tn_control_close(tn_control_client *c);

/* Whether the process that made the block still has it mapped, by /proc: a process of another PID namespace is not seen. */
int tn_control_alive(const tn_control_client *c);

/* Puts one command in, stamped `tsc` (a reading of the stamp counter of this machine; tn_control_stamp()). TN_E_NOSPACE where the
 * process has taken none of the last TN_CONTROL_SLOTS: the command is counted as lost. TN_E_IO where the block cannot be locked. */
TN_MUST_USE tn_error tn_control_post(tn_control_client *c, uint32_t kind, uint32_t value, uint32_t cause, uint64_t tsc, const char *text);
uint64_t tn_control_stamp(void);

/* Reads the i-th command that was put in and not taken, from 0: 1, or 0 past the last. For a process that is gone. */
int tn_control_untaken(const tn_control_client *c, uint64_t i, tn_control_slot *out);
/* The phase that the process will have once it has taken everything; what it refuses then is not known before. */
uint32_t tn_control_phase_to_come(const tn_control_client *c);

#endif
