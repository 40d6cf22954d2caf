#include "core/probe.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "core/check.h"

#define HEAD_BYTES 4096
#define TAIL_BYTES 64
#define MID_BYTES 64
#define TABLE_SLOTS 16384      /* a power of two, four times the live buffers of the largest run */
#define NAME_SLOTS 2048
#define RING_SLOTS 512
#define RING_BYTES 512
#define IMAGE_BYTES (HEAD_BYTES + 3 * MID_BYTES + TAIL_BYTES)

struct watched {
    void *p;
    size_t bytes;
    uint64_t seed;
    bool host;
};

struct pending {
    uint64_t seed;
    size_t bytes;
    size_t len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watched table[TABLE_SLOTS];
static struct { uint64_t hash; uint64_t count; } ordinals[NAME_SLOTS];
static uint64_t checksum;
static const struct engine *engine;
static cudaStream_t probe_stream;

static struct pinned_buffer ring;
static struct pending ring_meta[RING_SLOTS];
static int ring_used;

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 29;
    x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 32);
}

static uint64_t hash_bytes(const unsigned char *p, size_t n, uint64_t h)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3ULL;
    return mix(h);
}

/* Offsets and lengths of the watched places of a block, in order; the count is returned. */
static int places(size_t bytes, size_t off[5], size_t len[5])
{
    int n = 0;
    off[n] = 0;
    len[n++] = bytes < HEAD_BYTES ? bytes : HEAD_BYTES;
    if (bytes >= KIB(64)) {
        for (size_t quarter = 1; quarter <= 3; quarter++) {
            off[n] = bytes / 4 * quarter / 256 * 256;
            len[n++] = MID_BYTES;
        }
    }
    if (bytes > HEAD_BYTES) {
        size_t rest = bytes - HEAD_BYTES;
        len[n] = rest < TAIL_BYTES ? rest : TAIL_BYTES;
        off[n] = bytes - len[n];
        n++;
    }
    return n;
}

static void make_image(uint64_t seed, unsigned char image[IMAGE_BYTES])
{
    uint64_t x = seed | 1;
    for (size_t i = 0; i < IMAGE_BYTES; i += 8) {
        x = mix(x + i);
        memcpy(image + i, &x, 8);
    }
}

/* Caller holds the lock. The ordinal makes equal buffers of one name differ. */
static uint64_t next_seed(const char *name, size_t bytes)
{
    uint64_t h = hash_bytes((const unsigned char *)name, strlen(name), 0xcbf29ce484222325ULL);
    size_t i = h % NAME_SLOTS;
    while (ordinals[i].hash != 0 && ordinals[i].hash != h)
        i = (i + 1) % NAME_SLOTS;
    ordinals[i].hash = h;
    return mix(h + ordinals[i].count++ * 0x9e3779b97f4a7c15ULL) ^ mix(bytes);
}

static size_t slot_of(const void *p)
{
    return mix((uint64_t)(uintptr_t)p) & (TABLE_SLOTS - 1);
}

static uint64_t watch(const char *name, void *p, size_t bytes, bool host)
{
    pthread_mutex_lock(&lock);
    uint64_t seed = next_seed(name, bytes);
    size_t i = slot_of(p);
    size_t tried = 0;
    while (table[i].p != NULL) {
        if (table[i].p == p || ++tried == TABLE_SLOTS) {
            fprintf(stderr, "engine: %s: address %p is already a live buffer\n", name, p);
            exit(4);
        }
        i = (i + 1) & (TABLE_SLOTS - 1);
    }
    table[i] = (struct watched){ .p = p, .bytes = bytes, .seed = seed, .host = host };
    pthread_mutex_unlock(&lock);
    return seed;
}

/* Removes an entry and closes the gap, so that look-ups may stop at the first empty slot. */
static bool unwatch(const void *p, struct watched *out)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    size_t i = slot_of(p);
    while (table[i].p != NULL && table[i].p != p)
        i = (i + 1) & (TABLE_SLOTS - 1);
    if (table[i].p == p) {
        found = true;
        *out = table[i];
        table[i].p = NULL;
        for (size_t j = (i + 1) & (TABLE_SLOTS - 1); table[j].p != NULL; j = (j + 1) & (TABLE_SLOTS - 1)) {
            size_t home = slot_of(table[j].p);
            if (((j - home) & (TABLE_SLOTS - 1)) >= ((j - i) & (TABLE_SLOTS - 1))) {
                table[i] = table[j];
                table[j].p = NULL;
                i = j;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void add(uint64_t value)
{
    pthread_mutex_lock(&lock);
    checksum += value;
    pthread_mutex_unlock(&lock);
}

static void write_pattern(void *p, size_t bytes, uint64_t seed, bool host, cudaStream_t stream)
{
    unsigned char image[IMAGE_BYTES];
    size_t off[5], len[5];
    int n = places(bytes, off, len);
    size_t at = 0;
    make_image(seed, image);
    for (int i = 0; i < n; i++) {
        if (host)
            memcpy((char *)p + off[i], image + at, len[i]);
        else
            CU_CHECK(cudaMemcpyAsync((char *)p + off[i], image + at, len[i], cudaMemcpyHostToDevice, stream));
        at += len[i];
    }
    if (!host)
        CU_CHECK(cudaStreamSynchronize(stream));
}

/* The pattern of a stream-ordered block, by fills alone: a wait here would hide
 * every reuse that comes before the stream has passed the free. */
static void fill_pattern(char *p, size_t bytes, uint64_t seed, cudaStream_t stream)
{
    size_t off[5], len[5];
    int n = places(bytes, off, len);
    for (int i = 0; i < n; i++)
        CU_CHECK(cudaMemsetAsync(p + off[i], (int)(seed >> (8 * i) & 0xff), len[i], stream));
    for (size_t i = 0; i < 8 && (i + 1) * 32 <= len[0]; i++)
        CU_CHECK(cudaMemsetAsync(p + i * 32, (int)(seed >> (8 * i) & 0xff), 32, stream));
}

static void read_and_add(const struct watched *w)
{
    unsigned char image[IMAGE_BYTES];
    size_t off[5], len[5];
    int n = places(w->bytes, off, len);
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (w->host)
            memcpy(image + at, (const char *)w->p + off[i], len[i]);
        else
            CU_CHECK(cudaMemcpyAsync(image + at, (const char *)w->p + off[i], len[i], cudaMemcpyDeviceToHost, probe_stream));
        at += len[i];
    }
    if (!w->host)
        CU_CHECK(cudaStreamSynchronize(probe_stream));
    add(hash_bytes(image, at, w->seed));
}

static void wait_engine(void)
{
    CU_CHECK(cudaStreamSynchronize(engine->compute));
    CU_CHECK(cudaStreamSynchronize(engine->prefill));
    CU_CHECK(cudaStreamSynchronize(engine->copy));
}

void probe_init(const struct engine *eng)
{
    engine = eng;
    CU_CHECK(cudaStreamCreateWithFlags(&probe_stream, cudaStreamNonBlocking));
    ring = pinned_buffer_create("core/digest_ring", (size_t)RING_SLOTS * RING_BYTES);
}

int probe_sweep(void)
{
    int live = 0;
    probe_collect();
    for (size_t i = 0; i < TABLE_SLOTS; i++) {
        if (table[i].p != NULL) {
            read_and_add(&table[i]);
            live++;
        }
    }
    return live;
}

void probe_shutdown(void)
{
    CU_CHECK(cudaStreamDestroy(probe_stream));
}

uint64_t probe_checksum(void)
{
    return checksum;
}

void buf_dev(const char *name, void *p, size_t bytes)
{
    if (p != NULL)
        write_pattern(p, bytes, watch(name, p, bytes, false), false, probe_stream);
}

void buf_host(const char *name, void *p, size_t bytes)
{
    if (p != NULL)
        write_pattern(p, bytes, watch(name, p, bytes, true), true, NULL);
}

void buf_dev_async(const char *name, void *p, size_t bytes, cudaStream_t stream)
{
    if (p != NULL)
        fill_pattern(p, bytes, watch(name, p, bytes, false), stream);
}

void buf_retire(void *p)
{
    struct watched w;
    if (!unwatch(p, &w))
        return;
    wait_engine();
    read_and_add(&w);
}

void buf_retire_on(void *p, cudaStream_t stream)
{
    struct watched w;
    size_t off[5], len[5];
    if (!unwatch(p, &w))
        return;
    if (ring_used == RING_SLOTS)
        probe_collect();
    int n = places(w.bytes, off, len);
    size_t head = len[0] < RING_BYTES - TAIL_BYTES ? len[0] : RING_BYTES - TAIL_BYTES;
    size_t tail = n > 1 ? len[n - 1] : 0;
    char *slot = (char *)ring.data + (size_t)ring_used * RING_BYTES;
    CU_CHECK(cudaMemcpyAsync(slot, w.p, head, cudaMemcpyDeviceToHost, stream));
    if (tail > 0)
        CU_CHECK(cudaMemcpyAsync(slot + head, (const char *)w.p + off[n - 1], tail, cudaMemcpyDeviceToHost, stream));
    ring_meta[ring_used++] = (struct pending){ .seed = w.seed, .bytes = w.bytes, .len = head + tail };
}

void probe_collect(void)
{
    wait_engine();
    for (int i = 0; i < ring_used; i++) {
        const unsigned char *slot = (const unsigned char *)ring.data + (size_t)i * RING_BYTES;
        add(hash_bytes(slot, ring_meta[i].len, ring_meta[i].seed ^ ring_meta[i].bytes));
    }
    ring_used = 0;
}

void buf_free(void **p)
{
    if (*p == NULL)
        return;
    buf_retire(*p);
    CU_CHECK(cudaFree(*p));
    *p = NULL;
}

void buf_free_host(void **p)
{
    if (*p == NULL)
        return;
    buf_retire(*p);
    CU_CHECK(cudaFreeHost(*p));
    *p = NULL;
}

void buf_free_async(void **p, cudaStream_t stream)
{
    if (*p == NULL)
        return;
    buf_retire_on(*p, stream);
    CU_CHECK(cudaFreeAsync(*p, stream));
    *p = NULL;
}

void buf_free_inflight(void **p, cudaStream_t stream)
{
    if (*p == NULL)
        return;
    buf_retire_on(*p, stream);
    CU_CHECK(cudaFree(*p));
    *p = NULL;
}
