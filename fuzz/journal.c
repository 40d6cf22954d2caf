/* Fuzzing journals, given in short (journal_file.h): what is refused has one sentence with the file's name; of what is taken every record can be
 * looked up, and a plan of it is as it must be.
 * sources: planner/[a-z]*.c ledger/journal_reader.c ledger/reader_*.c ledger/tn_error.c
 * libraries: -lyaml -ljansson -lz */
#define _GNU_SOURCE
#include "fuzz/journal_file.h"
#include "fuzz/planned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SITES_MAX = 4096 };

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) : 0;
}

/* Everything that a reader hands out, touched. */
static size_t look_up(tn_reader *r, uint32_t end)
{
    size_t sum = text_bytes(tn_reader_damage(r)) + tn_reader_thread_count(r);
    const char *text = NULL, *name = NULL;
    for (uint32_t id = 0; id < tn_reader_site_end(r) && id < end; id++) {
        const tn_rec_site *site = tn_reader_site(r, id);
        const tn_rec_python_site *python = tn_reader_site_python(r, id);
        for (uint32_t i = 0; site && i < site->frame_count; i++)
            sum += text_bytes(tn_reader_module_path(r, site->frames[i].module));
        for (uint32_t i = 0; python && i < python->frame_count; i++)
            if (tn_reader_python(r, python->frames[i].function, &text, &name))
                sum += text_bytes(text) + text_bytes(name);
    }
    for (uint32_t id = 0; id < tn_reader_api_end(r); id++)
        sum += tn_reader_api(r, id, &name) ? text_bytes(name) + tn_reader_calls(r, id) + tn_reader_resolved(r, id) : 0;
    for (uint32_t id = 0; id <= TN_DEVICE_NONE; id++)
        sum += tn_reader_device(r, id, &name) ? text_bytes(name) : 0;
    for (size_t i = 0; tn_reader_coverage(r, i, &text); i++)
        sum += text_bytes(text);
    size_t events = 0;
    tn_reader_rewind(r);
    for (const tn_event *e, *before = NULL; (e = tn_reader_next(r, NULL)); before = e, events++) {
        must(!before || e->tsc >= before->tsc, "events come in the order of their stamps");
        sum += tn_reader_ns(r, e->tsc) + (e->type == TN_EV_MARK ? text_bytes(tn_reader_string(r, (uint32_t)e->addr)) : 0);
    }
    must(events == tn_reader_event_count(r), "as many events come as are counted");
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32], message[TN_TRACE_MESSAGE];
    tn_trace *trace;
    int fd = jf_journal(data, size, path);
    tn_reader *reader;
    if (tn_reader_open(path, &reader) == TN_OK) {
        int large = tn_reader_site_end(reader) > SITES_MAX ;
        must(look_up(reader, large ? SITES_MAX : UINT32_MAX) < SIZE_MAX, "its texts fit into memory");
        tn_reader_close(reader);
        if (large) { /* nothing but time, a look at each of millions of ids */
            close(fd);
            return 0;
        }
    }
    tn_error error = tn_trace_open((const char *const[]){path}, 1, &trace, message);
    close(fd);
    if (error != TN_OK) {
        must(trace == NULL, "where it fails there is no trace");
        must_be_sentence(message, error == TN_E_LIMIT ? strrchr(path, '/') + 1 : path);
        return 0;
    }
    planned(trace, 4);
    tn_trace_free(trace);
    return 0;
}
