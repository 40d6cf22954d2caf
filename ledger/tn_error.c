#include "ledger/tn_error.h"

static const char *const texts[TN_ERROR_COUNT] = {
    [TN_OK] = "no error",
    [TN_E_ARGUMENT] = "an argument is not valid",
    [TN_E_NOMEM] = "no host memory or file descriptor is left",
    [TN_E_OPEN] = "the file or folder cannot be opened or created",
    [TN_E_EXISTS] = "it exists already and would be overwritten",
    [TN_E_IO] = "reading or writing failed",
    [TN_E_NOSPACE] = "the disk, the quota or the file-size limit is full",
    [TN_E_NOPREALLOC] = "the file system cannot preallocate",
    [TN_E_FORMAT] = "this is not a journal, or it is damaged",
    [TN_E_VERSION] = "the journal has another format version",
    [TN_E_TRUNCATED] = "the journal ends before its header does",
    [TN_E_EMPTY] = "the run folder holds no journal",
    [TN_E_LIMIT] = "a limit of Tenure's own is reached",
    [TN_E_NOTFOUND] = "there is no such thing",
};

const char *tn_error_text(tn_error e)
{
    if ((unsigned)e >= TN_ERROR_COUNT || texts[e] == 0)
        return "an unknown error";
    return texts[e];
}
