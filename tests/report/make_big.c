/* Writes a run folder of any size with the journal's own writer: make_big RUN EVENTS SITES MODULES [TEMPLATE.so]. The events
 * are those of a program that serves: allocations and frees of some 100,000 blocks that live at one time, half of it
 * work and waits, four threads. Modules are copies of TEMPLATE, each with a build-id of its own, in RUN/modules; without one they
 * are names alone. The same arguments give the same events. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ledger/journal.h"

enum { THREADS = 4, LIVE = 100000, FRAMES = 12, API_MALLOC = 1, API_FREE = 2, API_LAUNCH = 3, API_SYNC = 4 };

static tn_journal *journal;
static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void fail(const char *what)
{
    fprintf(stderr, "make_big: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void record(uint32_t type, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    if (tn_journal_record(journal, type, a, a_bytes, b, b_bytes) != TN_OK)
        fail("a record");
}

/* ---- modules ---- */

static unsigned char *template_bytes;
static size_t template_size;
static uint64_t text_begin = 0x1000, text_end = 0x100000;
static unsigned char *template_id; /* inside template_bytes */
static uint32_t template_id_bytes;

static void read_template(const char *path)
{
    FILE *in = fopen(path, "r");
    struct stat st;
    if (!in || fstat(fileno(in), &st) != 0)
        fail(path);
    template_size = (size_t)st.st_size;
    template_bytes = malloc(template_size);
    if (!template_bytes || fread(template_bytes, 1, template_size, in) != template_size)
        fail(path);
    fclose(in);
    const Elf64_Ehdr *header = (const void *)template_bytes;
    const Elf64_Phdr *segments = (const void *)(template_bytes + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X) {
            text_begin = segments[i].p_vaddr;
            text_end = text_begin + segments[i].p_memsz;
        }
        for (uint64_t at = 0; segments[i].p_type == PT_NOTE && at + sizeof(Elf64_Nhdr) < segments[i].p_filesz;) {
            const Elf64_Nhdr *note = (const void *)(template_bytes + segments[i].p_offset + at);
            unsigned char *desc = (unsigned char *)(note + 1) + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID) {
                template_id = desc;
                template_id_bytes = note->n_descsz;
            }
            at = (uint64_t)(desc - (template_bytes + segments[i].p_offset)) + ((note->n_descsz + 3) & ~3u);
        }
    }
    if (!template_id || template_id_bytes < 4)
        fail("the template has no build-id");
}

static void make_modules(const char *run, uint32_t count, const char *template_path)
{
    char folder[PATH_MAX + 16], path[PATH_MAX + 32];
    snprintf(folder, sizeof(folder), "%s/modules", run);
    if (template_path) {
        read_template(template_path);
        if (mkdir(folder, 0777) != 0)
            fail(folder);
    }
    for (uint32_t i = 1; i <= count; i++) {
        tn_rec_module module = {.id = i, .build_id_bytes = 20, .base = (uint64_t)i << 32};
        module.end = module.base + text_end;
        snprintf(path, sizeof(path), "%s/lib%03u.so", folder, i);
        memcpy(module.build_id, &i, sizeof(i));
        if (template_path) {
            memcpy(template_id, &i, sizeof(i));
            memcpy(module.build_id, template_id, template_id_bytes);
            module.build_id_bytes = (uint8_t)template_id_bytes;
            FILE *out = fopen(path, "wx");
            if (!out || fwrite(template_bytes, 1, template_size, out) != template_size || fclose(out) != 0)
                fail(path);
        }
        record(TN_REC_MODULE, &module, sizeof(module), path, strlen(path) + 1);
    }
}

/* ---- records ---- */

static void make_records(uint32_t sites, uint32_t modules)
{
    static const struct { tn_rec_api api; const char *name; } apis[] = {
        {{API_MALLOC, TN_LEVEL_RUNTIME, TN_CLASS_ALLOC}, "cudaMalloc"},
        {{API_FREE, TN_LEVEL_RUNTIME, TN_CLASS_FREE}, "cudaFree"},
        {{API_LAUNCH, TN_LEVEL_DRIVER, TN_CLASS_WORK}, "cuLaunchKernel"},
        {{API_SYNC, TN_LEVEL_DRIVER, TN_CLASS_WAIT}, "cuStreamSynchronize"},
    };
    for (size_t i = 0; i < sizeof(apis) / sizeof(apis[0]); i++)
        record(TN_REC_API, &apis[i].api, sizeof(apis[i].api), apis[i].name, strlen(apis[i].name) + 1);
    tn_rec_device device = {.ordinal = 0, .total_bytes = (uint64_t)80 << 30};
    memset(device.uuid, 0xab, sizeof(device.uuid));
    record(TN_REC_DEVICE, &device, sizeof(device), "NVIDIA Example", 15);
    for (uint32_t i = 0; i < sites; i++) {
        struct { tn_rec_site head; struct tn_frame frames[FRAMES]; } site = {
            .head = {.id = TN_SITE_FIRST + i, .frame_count = FRAMES, .key = next_random(), .outer_api = API_MALLOC}};
        for (int k = 0; k < FRAMES; k++)
            site.frames[k] = (struct tn_frame){.module = 1 + (uint32_t)(next_random() % modules),
                                               .offset = text_begin + next_random() % (text_end - text_begin)};
        record(TN_REC_SITE, &site, sizeof(site), NULL, 0);
    }
    for (uint32_t i = 1; i <= 3; i++) {
        char text[16];
        snprintf(text, sizeof(text), "mark %u", i);
        record(TN_REC_STRING, &i, sizeof(i), text, strlen(text) + 1);
    }
}

/* ---- events ---- */

static tn_journal_thread *threads[THREADS];

static void commit(tn_event filled, tn_event_type type)
{
    tn_event *e = tn_journal_slot(journal, threads[next_random() % THREADS], 0);
    if (!e)
        fail("an event was dropped");
    filled.tsc = tn_stamp();
    *e = filled;
    tn_journal_commit(e, type);
}

static void make_events(uint64_t count, uint32_t sites)
{
    static struct { uint64_t bytes; uint32_t site; } live[LIVE];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t slot = next_random() % LIVE;
        tn_event e = {.device = 0, .phase = i < count / 10 ? TN_PHASE_LOADING : TN_PHASE_SERVING, .ctx = 1};
        if (i == count / 10) {
            e.kind = TN_PHASE_SERVING;
            commit(e, TN_EV_PHASE);
        } else if (i % (count / 4 + 1) == count / 4) {
            e.addr = 1 + i / (count / 4 + 1);
            commit(e, TN_EV_MARK);
        } else if (next_random() & 1) {
            e.stream = 1;
            if (next_random() & 1) {
                e.kind = TN_WORK_KERNEL;
                e.api = API_LAUNCH;
                e.bytes = 1;
                commit(e, TN_EV_WORK);
            } else {
                e.kind = TN_WAIT_STREAM;
                e.api = API_SYNC;
                e.aux = tn_stamp(); /* when it began */
                commit(e, TN_EV_WAIT);
            }
        } else {
            e.kind = TN_KIND_DEVICE;
            e.addr = 0x7f0000000000 + slot * (2 << 20);
            if (live[slot].bytes) {
                e.api = API_FREE;
                e.bytes = e.aux = live[slot].bytes;
                e.aux2 = live[slot].site;
                live[slot].bytes = 0;
                commit(e, TN_EV_FREE);
            } else {
                e.api = API_MALLOC;
                e.site = live[slot].site = TN_SITE_FIRST + (uint32_t)(next_random() % sites);
                e.bytes = e.aux = live[slot].bytes = 512 * (1 + next_random() % 64);
                commit(e, TN_EV_ALLOC);
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6) {
        fputs("usage: make_big RUN EVENTS SITES MODULES [TEMPLATE.so]\n", stderr);
        return 2;
    }
    uint32_t sites = (uint32_t)strtoul(argv[3], NULL, 10), modules = (uint32_t)strtoul(argv[4], NULL, 10);
    char run[PATH_MAX];
    if (mkdir(argv[1], 0777) != 0 || !realpath(argv[1], run))
        fail(argv[1]);
    tn_journal_options options = {.run_dir = run, .api_count = 5, .libtenure_path = ""};
    if (tn_journal_open(&options, &journal) != TN_OK)
        fail("the journal");
    for (uint32_t i = 0; i < THREADS; i++)
        if (!(threads[i] = tn_journal_attach(journal, 100 + i)))
            fail("a thread");
    make_modules(run, modules, argc == 6 ? argv[5] : NULL);
    make_records(sites, modules);
    make_events(strtoull(argv[2], NULL, 10), sites);
    for (uint32_t i = 0; i < THREADS; i++)
        tn_journal_detach(journal, threads[i]);
    tn_journal_end(journal);
    return 0;
}
