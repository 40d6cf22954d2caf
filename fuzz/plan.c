/* Fuzzing plan files: what is refused has one sentence with the file's name; what is taken passes its check, is written and read as the same, is
 * printed, and a run with memory of every family can be replayed against it.
 * sources: planner/[a-z]*.c ledger/journal_reader.c ledger/reader_*.c ledger/tn_error.c
 * libraries: -lyaml -ljansson -lz */
#define _GNU_SOURCE
#include "fuzz/journal_file.h"
#include "fuzz/planned.h"
#include "planner/memory_section.h"
#include "planner/memory_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the run ---- */

typedef struct run { uint8_t *records, *events; uint64_t at; uint32_t sites; uint8_t phase; } run;

static void add_site(run *r, uint64_t key)
{
    tn_rec_site site = {.id = TN_SITE_FIRST + r->sites++, .key = key};
    tn_record head = {.type = TN_REC_SITE, .bytes = sizeof site};
    memcpy(r->records, &head, sizeof head);
    memcpy(r->records + sizeof head, &site, sizeof site);
    r->records += sizeof head + sizeof site;
}

static void add_event(run *r, tn_event e)
{
    e.tsc = ++r->at;
    e.ctx = 1;
    e.phase = r->phase;
    memcpy(r->events, &e, sizeof e);
    r->events += sizeof e;
}

/* Sites 1 to 7 have the keys 1 to 7: weights, the engine's, a pool of fixed blocks, scratch, stream-ordered memory on two streams, pinned memory of
 * Loading, pinned memory to stay. */
static tn_trace *make_run(void)
{
    static uint8_t file[TN_HEADER_BYTES + 2 * TN_CHUNK_BYTES];
    static const uint8_t kinds[8] = {0, TN_KIND_DEVICE, TN_KIND_DEVICE, TN_KIND_DEVICE, TN_KIND_DEVICE, TN_KIND_ASYNC, TN_KIND_PINNED, TN_KIND_PINNED};
    static const uint64_t sizes[8] = {0, 3 << 20, 8192, 2 << 20, 5000, 70000, 4096, 100};
    tn_chunk_header head = {.magic = TN_CHUNK_MAGIC, .type = TN_CHUNK_RECORDS};
    run r = {.records = file + TN_HEADER_BYTES + sizeof head, .events = file + TN_HEADER_BYTES + TN_CHUNK_BYTES + sizeof head};
    jf_header(file);
    memcpy(file + TN_HEADER_BYTES, &head, sizeof head);
    head.type = TN_CHUNK_EVENTS;
    head.thread = 1;
    memcpy(file + TN_HEADER_BYTES + TN_CHUNK_BYTES, &head, sizeof head);
    for (uint64_t key = 1; key < 8; key++)
        add_site(&r, key);
    for (unsigned round = 0; round < 6; round++) {
        if (round == 2) {
            add_event(&r, (tn_event){.type = TN_EV_FREE, .kind = TN_KIND_PINNED, .addr = 0x6000});
            add_event(&r, (tn_event){.type = TN_EV_FREE, .kind = TN_KIND_PINNED, .addr = 0x6001});
            r.phase = TN_PHASE_SERVING;
            add_event(&r, (tn_event){.type = TN_EV_PHASE, .kind = TN_PHASE_SERVING});
        }
        for (uint32_t site = 1; site < 8; site++) {
            uint64_t addr = (uint64_t)site << 12 | round;
            if ((site == 1 || site == 2 || site == 6) && round >= 2)
                continue;
            add_event(&r, (tn_event){.type = TN_EV_ALLOC, .kind = kinds[site], .site = TN_SITE_FIRST + site - 1, .addr = addr, .bytes = sizes[site] + round * 512 * (site > 3),
                                     .aux = sizes[site], .stream = site == 5 ? 1 + round % 2 : 0});
            if (site == 1)
                add_event(&r, (tn_event){.type = TN_EV_FIRST_WRITE, .kind = TN_WRITE_H2D, .addr = addr});
            add_event(&r, (tn_event){.type = TN_EV_WORK, .kind = TN_WORK_KERNEL, .stream = 1 + round % 2, .bytes = 1, .aux = r.at + 1});
        }
        for (uint32_t site = 4; site < 6; site++)
            add_event(&r, (tn_event){.type = TN_EV_FREE, .kind = kinds[site], .addr = (uint64_t)site << 12 | round, .stream = site == 5 ? 1 + round % 2 : 0});
        add_event(&r, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_STREAM, .stream = 1 + round % 2, .aux = r.at});
    }
    char path[32], message[TN_TRACE_MESSAGE];
    tn_trace *trace;
    int fd = jf_memory_file(file, sizeof file, path);
    must(tn_trace_open((const char *const[]){path}, 1, &trace, message) == TN_OK, message);
    close(fd);
    return trace;
}

/* ---- the target ---- */

static void print_memory(const tn_plan *plan)
{
    static tn_memory_input input;
    static tn_memory_plan memory;
    for (size_t i = 0; i < plan->section_count; i++) {
        char where[TN_MEMORY_NAME], *text = NULL;
        size_t length = 0;
        if (!tn_memory_of_section(&plan->sections[i], 0, &input, where))
            continue;
        input.budget = plan->budget ? plan->budget : 1;
        tn_memory_fit(&input, &memory);
        FILE *out = open_memstream(&text, &length);
        must(out && tn_memory_text(&memory, out) == 0, "its arithmetic is printed");
        fclose(out);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_trace *trace;
    char message[TN_PLAN_MESSAGE] = "";
    tn_plan *plan;
    if (!trace)
        trace = make_run();
    if (size == 0) { /* the run's own plan, which is what seeds are made of */
        planned(trace, 0);
        return 0;
    }
    if (tn_plan_parse((const char *)data, size, "f.json", &plan, message) != TN_OK) {
        must(plan == NULL, "where it fails there is no plan");
        must_be_sentence(message, "f.json");
        return 0;
    }
    must(tn_plan_check(plan, message) == TN_OK, "what was taken passes its check");
    planned_again(plan);
    print_memory(plan);
    planned_verify(plan, trace, 0);
    tn_plan_free(plan);
    return 0;
}
