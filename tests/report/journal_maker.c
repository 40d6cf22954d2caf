/* Makes journals for tests. */
#define _GNU_SOURCE
#include "tests/report/journal_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 8 };

typedef struct jm_thread { size_t chunk, events; uint64_t sequence; } jm_thread;

struct jm {
    unsigned char *bytes; /* header, then chunks */
    size_t chunks;
    size_t records, record_used; /* chunk with records and bytes used in it; 0 = none yet */
    size_t counters;
    jm_thread threads[MAX_THREADS];
};

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "journal maker: %s\n", what);
    abort();
}

static unsigned char *chunk(jm *j, size_t number) /* from 1 */
{
    return j->bytes + TN_HEADER_BYTES + (number - 1) * TN_CHUNK_BYTES;
}

static size_t add_chunk(jm *j, uint32_t type, uint32_t thread, uint64_t sequence)
{
    size_t size = TN_HEADER_BYTES + (j->chunks + 1) * TN_CHUNK_BYTES;
    j->bytes = realloc(j->bytes, size);
    must(j->bytes != NULL, "no memory");
    j->chunks++;
    memset(chunk(j, j->chunks), 0, TN_CHUNK_BYTES);
    tn_chunk_header header = {.magic = TN_CHUNK_MAGIC, .type = type, .thread = thread, .tid = 100 + thread, .sequence = sequence,
                              .tsc = JM_START};
    memcpy(chunk(j, j->chunks), &header, sizeof(header));
    return j->chunks;
}

jm *jm_new(uint32_t pid)
{
    jm *j = calloc(1, sizeof(*j));
    must(j && (j->bytes = calloc(1, TN_HEADER_BYTES)), "no memory");
    tn_journal_header h = {.version = TN_JOURNAL_VERSION, .header_bytes = TN_HEADER_BYTES, .chunk_bytes = TN_CHUNK_BYTES,
                           .event_bytes = sizeof(tn_event), .flags = TN_HF_ENDED, .tsc_hz = 1000000000, .tsc_start = JM_START,
                           .mono_start_ns = 5000000, .real_start_ns = 1790000000000000000u, .tsc_last = JM_START + 2000000000,
                           .mono_last_ns = 2005000000, .random_id = 0x1234, .pid = pid, .ppid = 1, .api_count = 4,
                           .shim_version = 0x000100, .driver_version = 13000, .runtime_version = 13000,
                           .host = "testhost", .boot_id = "boot", .exe = "/opt/engine", .cmdline = "engine\0--config\0a b",
                           .exe_build_id = "00ff", .libtenure_path = "/opt/libtenure.so"};
    memcpy(h.magic, TN_JOURNAL_MAGIC, sizeof(h.magic));
    memcpy(j->bytes, &h, sizeof(h));
    return j;
}

void jm_free(jm *j)
{
    free(j->bytes);
    free(j);
}

tn_journal_header *jm_header(jm *j)
{
    return (tn_journal_header *)j->bytes;
}

static void add_record(jm *j, uint32_t type, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    size_t payload = a_bytes + b_bytes, whole = sizeof(tn_record) + ((payload + 7) & ~(size_t)7);
    if (!j->records || j->record_used + whole > TN_CHUNK_BYTES) {
        j->records = add_chunk(j, TN_CHUNK_RECORDS, 0, 0);
        j->record_used = sizeof(tn_chunk_header);
    }
    unsigned char *at = chunk(j, j->records) + j->record_used;
    tn_record header = {.type = type, .bytes = (uint32_t)payload};
    memcpy(at, &header, sizeof(header));
    memcpy(at + sizeof(header), a, a_bytes);
    if (b_bytes)
        memcpy(at + sizeof(header) + a_bytes, b, b_bytes);
    j->record_used += whole;
}

void jm_api(jm *j, uint16_t id, uint8_t level, uint8_t klass, const char *name)
{
    tn_rec_api record = {.id = id, .level = level, .klass = klass};
    add_record(j, TN_REC_API, &record, sizeof(record), name, strlen(name) + 1);
}

void jm_device(jm *j, uint32_t ordinal, uint8_t uuid, uint64_t total_bytes, const char *name)
{
    tn_rec_device record = {.ordinal = ordinal, .total_bytes = total_bytes};
    memset(record.uuid, uuid, sizeof(record.uuid));
    add_record(j, TN_REC_DEVICE, &record, sizeof(record), name, strlen(name) + 1);
}

void jm_module(jm *j, uint32_t id, const char *build_id, const char *path)
{
    tn_rec_module record = {.id = id, .base = 0x400000, .end = 0x500000};
    record.jit = build_id && strcmp(build_id, "jit") == 0;
    record.hashed = build_id == NULL;
    for (; build_id && !record.jit && *build_id; build_id += 2) {
        unsigned byte;
        must(sscanf(build_id, "%2x", &byte) == 1 && record.build_id_bytes < sizeof(record.build_id), "bad build-id");
        record.build_id[record.build_id_bytes++] = (uint8_t)byte;
    }
    add_record(j, TN_REC_MODULE, &record, sizeof(record), path, strlen(path) + 1);
}

void jm_site(jm *j, uint32_t id, uint64_t key, uint32_t frame_count, const uint64_t (*frames)[2])
{
    tn_rec_site record = {.id = id, .frame_count = frame_count, .key = key};
    struct tn_frame list[TN_FRAMES_MAX] = {0};
    must(frame_count <= TN_FRAMES_MAX, "too many frames");
    for (uint32_t i = 0; i < frame_count; i++)
        list[i] = (struct tn_frame){.module = (uint32_t)frames[i][0], .offset = frames[i][1]};
    add_record(j, TN_REC_SITE, &record, sizeof(record), list, frame_count * sizeof(list[0]));
}

void jm_python(jm *j, uint32_t id, const char *file, const char *name, uint32_t first_line)
{
    char text[512];
    tn_rec_python record = {.id = id, .first_line = first_line};
    size_t n = strlen(file) + 1, m = strlen(name) + 1;
    must(n + m <= sizeof(text), "names too long");
    memcpy(text, file, n);
    memcpy(text + n, name, m);
    add_record(j, TN_REC_PYTHON, &record, sizeof(record), text, n + m);
}

void jm_python_site(jm *j, uint32_t id, uint32_t native, uint64_t key, uint32_t frame_count, const uint32_t (*frames)[2], uint32_t flags)
{
    tn_rec_python_site record = {.id = id, .native = native, .key = key, .frame_count = frame_count, .flags = flags};
    add_record(j, TN_REC_PYTHON_SITE, &record, sizeof(record), frames, frame_count * sizeof(frames[0]));
}

void jm_string(jm *j, uint32_t id, const char *text)
{
    add_record(j, TN_REC_STRING, &id, sizeof(id), text, strlen(text) + 1);
}

void jm_coverage(jm *j, uint32_t what, const char *text)
{
    tn_rec_coverage record = {.what = what};
    add_record(j, TN_REC_COVERAGE, &record, sizeof(record), text, strlen(text) + 1);
}

void jm_count(jm *j, uint16_t api, uint64_t calls, uint64_t resolved)
{
    if (!j->counters)
        j->counters = add_chunk(j, TN_CHUNK_COUNTERS, 0, 0);
    /* Every second increment in another thread's block: only the sum has a meaning. */
    uint64_t *block = (uint64_t *)(chunk(j, j->counters) + sizeof(tn_chunk_header));
    block[api] += calls / 2;
    block[TN_COUNTERS + api] += calls - calls / 2;
    block[TN_API_MAX + api] += resolved;
}

void jm_event(jm *j, uint32_t thread, uint64_t at, tn_event event)
{
    must(thread > 0 && thread <= MAX_THREADS, "bad thread");
    jm_thread *t = &j->threads[thread - 1];
    if (!t->chunk || t->events == TN_EVENTS_PER_CHUNK) {
        t->chunk = add_chunk(j, TN_CHUNK_EVENTS, thread, t->sequence++);
        t->events = 0;
    }
    event.tsc = JM_START + at;
    memcpy(chunk(j, t->chunk) + sizeof(tn_chunk_header) + sizeof(event) * t->events++, &event, sizeof(event));
}

void jm_write(jm *j, const char *path, size_t bytes)
{
    size_t size = TN_HEADER_BYTES + j->chunks * TN_CHUNK_BYTES;
    FILE *out = fopen(path, "wx");
    must(out != NULL, path);
    must(fwrite(j->bytes, 1, bytes && bytes < size ? bytes : size, out) > 0, path);
    must(fclose(out) == 0, path);
}

enum { MALLOC = 1, FREE = 2, DRIVER_MALLOC = 3, HOST_ALLOC = 4, FREE_HOST = 5, QUERY = 6 };

jm *jm_example(uint32_t pid)
{
    jm *j = jm_new(pid);
    jm_api(j, MALLOC, TN_LEVEL_RUNTIME, TN_CLASS_ALLOC, "cudaMalloc");
    jm_api(j, FREE, TN_LEVEL_RUNTIME, TN_CLASS_FREE, "cudaFree");
    jm_api(j, DRIVER_MALLOC, TN_LEVEL_DRIVER, TN_CLASS_ALLOC, "cuMemAlloc_v2");
    jm_api(j, HOST_ALLOC, TN_LEVEL_RUNTIME, TN_CLASS_ALLOC, "cudaHostAlloc");
    jm_api(j, FREE_HOST, TN_LEVEL_RUNTIME, TN_CLASS_FREE, "cudaFreeHost");
    jm_api(j, QUERY, TN_LEVEL_RUNTIME, TN_CLASS_QUERY, "cudaMemGetInfo");
    jm_device(j, 0, 0xab, (uint64_t)80 << 30, "NVIDIA Example");
    jm_module(j, 1, "0123456789abcdef", "/opt/engine");
    jm_module(j, 2, NULL, "/opt/libblas.so");
    jm_module(j, 3, "jit", "");
    jm_site(j, 2, 0xfeedfacecafef00d, 2, (const uint64_t[][2]){{1, 0x1234}, {1, 0x4321}});
    jm_site(j, 3, 0x00000000deadbeef, 3, (const uint64_t[][2]){{2, 0x777}, {3, 0}, {1, 0x4400}});
    const tn_event alloc = {.type = TN_EV_ALLOC, .kind = TN_KIND_DEVICE, .api = DRIVER_MALLOC, .outer_api = MALLOC, .site = 2, .ctx = 1};
    tn_event e = alloc;
    e.addr = 0x10000000, e.bytes = 3 << 20, e.aux = 4 << 20;
    jm_event(j, 1, 10, e);
    e.addr = 0x20000000, e.bytes = 1000, e.aux = 2 << 20;
    jm_event(j, 1, 20, e);
    e.addr = 0, e.bytes = (uint64_t)4 << 40, e.aux = 0, e.result = 2;
    jm_event(j, 1, 30, e);
    e = alloc;
    e.outer_api = 0, e.site = 3, e.addr = 0x30000000, e.bytes = 64 << 20, e.aux = 64 << 20;
    jm_event(j, 2, 25, e);
    e = (tn_event){.type = TN_EV_FREE, .kind = TN_KIND_DEVICE, .api = FREE, .site = 2, .ctx = 1, .addr = 0x10000000, .bytes = 3 << 20};
    jm_event(j, 1, 40, e);
    e = (tn_event){.type = TN_EV_ALLOC, .kind = TN_KIND_PINNED, .api = HOST_ALLOC, .site = 2, .ctx = 1, .addr = 0x7000, .bytes = 8192, .aux = 8192};
    jm_event(j, 1, 50, e);
    jm_count(j, MALLOC, 3, 0);
    jm_count(j, FREE, 1, 0);
    jm_count(j, DRIVER_MALLOC, 4, 2);
    jm_count(j, HOST_ALLOC, 1, 0);
    jm_count(j, QUERY, 0, 1);
    jm_coverage(j, TN_COV_BYPASS, "/opt/libdeep.so was opened with RTLD_DEEPBIND and resolved cudaMalloc by itself");
    return j;
}
