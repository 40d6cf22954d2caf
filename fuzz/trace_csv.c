/* Fuzzing CSV files of allocations and frees: what is refused has one sentence with the file's name and the line; a plan of what is taken is as it
 * must be.
 * sources: planner/[a-z]*.c ledger/journal_reader.c ledger/reader_*.c ledger/tn_error.c
 * libraries: -lyaml -ljansson -lz */
#define _GNU_SOURCE
#include "fuzz/journal_file.h"
#include "fuzz/planned.h"
#include "planner/import_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32], message[TN_TRACE_MESSAGE];
    tn_trace *trace;
    int fd = jf_memory_file(data, size, path);
    tn_error error = tn_import_csv(path, &trace, message);
    close(fd);
    if (error != TN_OK) {
        size_t length = strlen(path);
        must(trace == NULL, "where it fails there is no trace");
        must_be_sentence(message, path);
        must(message[length + 1] >= '0' && message[length + 1] <= '9', "the sentence names the line");
        return 0;
    }
    planned(trace, 0);
    tn_trace_free(trace);
    return 0;
}
