/* Fuzzing MiniMalloc files: what is read can be written and read again, is packed by a little work, and holds; what is
 * refused has one sentence.
 * sources: planner/pack*.c planner/text_file.c */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/pack_check.h"
#include "planner/pack_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "pack_csv: %s\n", what);
    abort();
}

static void write_and_read(const tn_pack_csv *csv, const uint64_t *offsets)
{
    char message[TN_PACK_CSV_MESSAGE], *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    tn_pack_csv again;
    must(out && tn_pack_csv_write(out, csv, offsets), "writing failed");
    fclose(out);
    must(tn_pack_csv_parse(text, length, "again", &again, message), "what was written cannot be read");
    must(again.count == csv->count, "buffers were lost");
    for (size_t k = 0; k < csv->count; k++) {
        const tn_pack_buffer *a = &csv->buffers[k], *b = &again.buffers[k];
        must(strcmp(csv->names[k], again.names[k]) == 0 && a->id == b->id && a->lower == b->lower && a->upper == b->upper &&
                 a->size == b->size && a->alignment == b->alignment && a->gap_count == b->gap_count,
             "a buffer changed");
        must(a->gap_count == 0 || memcmp(a->gaps, b->gaps, a->gap_count * sizeof(*a->gaps)) == 0, "a gap changed");
        must(again.offsets[k] == offsets[k], "an offset changed");
    }
    tn_pack_csv_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[TN_PACK_CSV_MESSAGE];
    tn_pack_csv csv;
    if (!tn_pack_csv_parse((const char *)data, size, "f.csv", &csv, message)) {
        must(strncmp(message, "f.csv:", 6) == 0 && !strchr(message, '\n') && !csv.buffers && !csv.text, "no one sentence");
        return 0;
    }
    uint64_t *offsets = calloc(csv.count, sizeof(*offsets));
    tn_pack_options options = {.steps = 20000};
    tn_pack_result result;
    tn_pack_fault fault;
    size_t culprit = 0;
    must(offsets != NULL, "no memory");
    tn_pack_error error = tn_pack(csv.buffers, csv.count, &options, offsets, &result, &culprit);
    must(error == TN_PACK_OK || error == TN_PACK_E_OVERFLOW, "the packer refuses what the reader takes");
    if (!error) {
        must(tn_pack_check(csv.buffers, csv.count, offsets, result.height, &fault) == TN_PACK_HOLDS, "the placement does not hold");
        must(result.lower_bound <= result.height, "the bound is above the height");
    }
    write_and_read(&csv, offsets);
    free(offsets);
    tn_pack_csv_free(&csv);
    return 0;
}
