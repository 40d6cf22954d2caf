/* The one enum of errors of the shim, the ledger and the command, with the one message table behind
 * tn_error_text(). Functions return one of these by value; TN_OK is 0. Nothing here allocates, so any
 * thread may use it at any time, a signal handler included. (tiers/ is a library of its own and has its
 * own typed errors.) */
#ifndef TENURE_LEDGER_TN_ERROR_H
#define TENURE_LEDGER_TN_ERROR_H

typedef enum tn_error {
    TN_OK = 0,
    TN_E_ARGUMENT,      /* an argument outside the function's contract */
    TN_E_NOMEM,         /* the host has no memory left for our own structures */
    TN_E_OPEN,          /* a file or folder cannot be opened or created */
    TN_E_EXISTS,        /* it is there already and would be overwritten */
    TN_E_IO,            /* a read or write failed */
    TN_E_NOSPACE,       /* disk, quota or file-size limit reached */
    TN_E_NOPREALLOC,    /* the file system cannot preallocate: buffered writes instead */
    TN_E_FORMAT,        /* not a journal, or a damaged one */
    TN_E_VERSION,       /* a journal of another format version */
    TN_E_TRUNCATED,     /* shorter than its header says */
    TN_E_EMPTY,         /* a run folder with no journal */
    TN_E_LIMIT,         /* a limit of ours (journal size, threads, APIs) is reached */
    TN_E_NOTFOUND,
    TN_ERROR_COUNT
} tn_error;

/* A short English phrase without a final full stop; never NULL, also for values outside the enum. */
const char *tn_error_text(tn_error e);

#define TN_MUST_USE __attribute__((warn_unused_result))

#endif
