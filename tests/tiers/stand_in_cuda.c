#define _GNU_SOURCE
#include "stand_in_cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OK = 0, INVALID = 1, MEMORY = 2, NOT_SUPPORTED = 801, REGISTERED = 712, NOT_REGISTERED = 713 };

typedef enum kind { PLAIN, ASYNC, HOST, REGISTERED_HOST, RESERVATION, HANDLE, MAPPING, KINDS } kind;

/* Everything the driver knows by an address or a handle. */
typedef struct object {
    kind kind;
    unsigned long long at;
    size_t bytes;
    void *memory;          /* what is to be unmapped */
    size_t memory_bytes;
    int fd;                /* of a handle */
    struct object *handle; /* of a mapping */
    size_t uses;           /* of a handle: itself and its mappings */
    bool released;
    bool access[STAND_IN_DEVICES];
    struct object *next;
} object;

static object *objects;
static size_t capacity, physical, misaligned, totals[KINDS];
static bool capturing, vmm;
static unsigned last_flags;

static object *add(kind k, unsigned long long at, size_t bytes)
{
    object *o = calloc(1, sizeof *o);
    if (o == NULL)
        abort();
    *o = (object){.kind = k, .at = at, .bytes = bytes, .fd = -1, .next = objects};
    objects = o;
    totals[k] += bytes;
    return o;
}

static void delete(object *o)
{
    object **at = &objects;
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    totals[o->kind] -= o->bytes;
    if (o->memory != NULL)
        munmap(o->memory, o->memory_bytes);
    if (o->fd >= 0)
        close(o->fd);
    free(o);
}

static object *find(kind k, unsigned long long at)
{
    object *o = objects;
    while (o != NULL && (o->kind != k || o->at != at))
        o = o->next;
    return o;
}

/* Any of a kind that shares bytes with the range. */
static object *overlap(kind k, unsigned long long at, size_t bytes)
{
    object *o = objects;
    while (o != NULL && (o->kind != k || o->at >= at + bytes || at >= o->at + o->bytes))
        o = o->next;
    return o;
}

static bool charge(size_t bytes)
{
    if (bytes > capacity - physical)
        return false;
    physical += bytes;
    return true;
}

static int take(kind k, unsigned long long *at, size_t bytes, size_t alignment, bool on_device)
{
    if (at == NULL || bytes == 0)
        return INVALID;
    *at = 0;
    if (on_device && !charge(bytes))
        return MEMORY;
    size_t room = bytes + alignment + misaligned;
    char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        physical -= on_device ? bytes : 0;
        return MEMORY;
    }
    /* Exactly as aligned as said, and no better, so that what relies on more is found. */
    uintptr_t base = ((uintptr_t)memory + 2 * alignment - 1) & ~(uintptr_t)(2 * alignment - 1);
    base = base - alignment >= (uintptr_t)memory ? base - alignment : base;
    object *o = add(k, base + misaligned, bytes);
    o->memory = memory;
    o->memory_bytes = room;
    *at = o->at;
    return OK;
}

static int give(kind k, unsigned long long at, bool on_device)
{
    object *o = find(k, at);
    if (o == NULL)
        return INVALID;
    physical -= on_device ? o->bytes : 0;
    delete(o);
    return OK;
}

static int alloc(tn_cuda_address *a, size_t n)
{
    return take(PLAIN, a, n, n >= STAND_IN_PAGE ? STAND_IN_PAGE : 512, true);
}

static int free_plain(tn_cuda_address a)
{
    return give(PLAIN, a, true);
}

static int info(size_t *unused, size_t *total)
{
    *unused = capacity - physical;
    *total = capacity;
    return OK;
}

static int default_pool(tn_cuda_pool *pool, int device)
{
    static char pools[STAND_IN_DEVICES];
    *pool = &pools[device];
    return OK;
}

static int alloc_async(tn_cuda_address *a, size_t n, tn_cuda_stream s)
{
    (void)s;
    return capturing ? 900 : take(ASYNC, a, n, 512, true);
}

static int alloc_from_pool(tn_cuda_address *a, size_t n, tn_cuda_pool pool, tn_cuda_stream s)
{
    return pool == NULL ? INVALID : alloc_async(a, n, s);
}

static int free_async(tn_cuda_address a, tn_cuda_stream s)
{
    (void)s;
    return give(ASYNC, a, true);
}

static int is_capturing(tn_cuda_stream s, int *status)
{
    (void)s;
    *status = capturing;
    return OK;
}

static int synchronize(tn_cuda_stream s)
{
    (void)s;
    return capturing ? 900 : OK;
}

static int attribute(int *value, int which, int device)
{
    if (which != TN_CUDA_ATTRIBUTE_VMM || device < 0 || device >= STAND_IN_DEVICES)
        return INVALID;
    *value = vmm;
    return OK;
}

static bool good_property(const tn_cuda_property *p)
{
    static const tn_cuda_property zero;
    tn_cuda_property rest = *p;
    rest.type = 0;
    rest.location = zero.location;
    return p->type == TN_CUDA_PINNED && p->location.type == TN_CUDA_ON_DEVICE && p->location.id >= 0 &&
           p->location.id < STAND_IN_DEVICES && memcmp(&rest, &zero, sizeof zero) == 0;
}

static int granularity(size_t *n, const tn_cuda_property *p, int which)
{
    (void)which;
    *n = STAND_IN_PAGE;
    return !vmm ? NOT_SUPPORTED : good_property(p) ? OK : INVALID;
}

static int reserve(tn_cuda_address *a, size_t n, size_t alignment, tn_cuda_address hint, unsigned long long flags)
{
    if (n == 0 || n % STAND_IN_PAGE != 0 || alignment != 0 || hint != 0 || flags != 0)
        return INVALID;
    if (n > (size_t)1 << 46)
        return MEMORY;
    size_t room = n + STAND_IN_PAGE;
    char *memory = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return MEMORY;
    object *o = add(RESERVATION, ((uintptr_t)memory + STAND_IN_PAGE - 1) & ~(uintptr_t)(STAND_IN_PAGE - 1), n);
    o->memory = memory;
    o->memory_bytes = room;
    *a = o->at;
    return OK;
}

static int unreserve(tn_cuda_address a, size_t n)
{
    object *o = find(RESERVATION, a);
    if (o == NULL || o->bytes != n || overlap(MAPPING, a, n) != NULL)
        return INVALID;
    delete(o);
    return OK;
}

static int create(tn_cuda_handle *h, size_t n, const tn_cuda_property *p, unsigned long long flags)
{
    static tn_cuda_handle given;
    if (n == 0 || n % STAND_IN_PAGE != 0 || !good_property(p) || flags != 0)
        return INVALID;
    if (!charge(n))
        return MEMORY;
    object *o = add(HANDLE, ++given, n);
    o->fd = memfd_create("stand_in", 0);
    o->uses = 1;
    if (o->fd < 0 || ftruncate(o->fd, (off_t)n) != 0)
        abort();
    *h = o->at;
    return OK;
}

static void unuse(object *o)
{
    if (--o->uses > 0)
        return;
    physical -= o->bytes;
    delete(o);
}

static int release(tn_cuda_handle h)
{
    object *o = find(HANDLE, h);
    if (o == NULL || o->released)
        return INVALID;
    o->released = true;
    unuse(o);
    return OK;
}

static int map(tn_cuda_address a, size_t n, size_t offset, tn_cuda_handle h, unsigned long long flags)
{
    object *o = find(HANDLE, h), *r = overlap(RESERVATION, a, n);
    if (o == NULL || o->released || o->bytes != n || offset != 0 || flags != 0 || overlap(MAPPING, a, n) != NULL)
        return INVALID;
    if (r == NULL || a < r->at || a + n > r->at + r->bytes || a % STAND_IN_PAGE != 0)
        return INVALID;
    if (mmap((void *)(uintptr_t)a, n, PROT_NONE, MAP_SHARED | MAP_FIXED, o->fd, 0) == MAP_FAILED)
        abort();
    o->uses++;
    add(MAPPING, a, n)->handle = o;
    return OK;
}

/* One mapping, whole. */
static int unmap(tn_cuda_address a, size_t n)
{
    object *o = find(MAPPING, a);
    if (o == NULL || o->bytes != n)
        return INVALID;
    if (mmap((void *)(uintptr_t)a, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort();
    unuse(o->handle);
    delete(o);
    return OK;
}

static int set_access(tn_cuda_address a, size_t n, const tn_cuda_access *d, size_t count)
{
    for (tn_cuda_address at = a; at < a + n;) {
        object *o = find(MAPPING, at);
        if (o == NULL || o->at + o->bytes > a + n)
            return INVALID;
        at += o->bytes;
    }
    for (size_t i = 0; i < count; i++)
        if (d[i].location.type != TN_CUDA_ON_DEVICE || d[i].location.id < 0 || d[i].location.id >= STAND_IN_DEVICES ||
            (d[i].flags != TN_CUDA_ACCESS_NONE && d[i].flags != TN_CUDA_ACCESS_READ_WRITE))
            return INVALID;
    for (tn_cuda_address at = a; at < a + n;) {
        object *o = find(MAPPING, at);
        for (size_t i = 0; i < count; i++)
            o->access[d[i].location.id] = d[i].flags != TN_CUDA_ACCESS_NONE;
        at += o->bytes;
    }
    return mprotect((void *)(uintptr_t)a, n, PROT_READ | PROT_WRITE) == 0 ? OK : INVALID;
}

static int host_alloc(void **p, size_t n, unsigned flags)
{
    unsigned long long at;
    last_flags = flags;
    int code = (flags & ~7u) != 0 ? INVALID : n > (size_t)1 << 40 ? MEMORY : take(HOST, &at, n, 4096, false);
    *p = code == OK ? (void *)(uintptr_t)at : NULL;
    return code;
}

static int host_free(void *p)
{
    return give(HOST, (uintptr_t)p, false);
}

static int host_register(void *p, size_t n, unsigned flags)
{
    if (p == NULL || n == 0 || (flags & ~15u) != 0)
        return INVALID;
    if (overlap(REGISTERED_HOST, (uintptr_t)p, n) != NULL)
        return REGISTERED;
    last_flags = flags;
    add(REGISTERED_HOST, (uintptr_t)p, n);
    return OK;
}

static int host_unregister(void *p)
{
    return give(REGISTERED_HOST, (uintptr_t)p, false) == OK ? OK : NOT_REGISTERED;
}

static const tn_cuda whole_table = {
    alloc,   free_plain, info,   default_pool, alloc_from_pool, alloc_async, free_async, is_capturing,  synchronize,    attribute, granularity,
    reserve, unreserve,  create, release,      map,             unmap,       set_access, host_alloc, host_free, host_register, host_unregister,
};

const tn_cuda *stand_in_cuda(void)
{
    return &whole_table;
}

void stand_in_start(size_t bytes)
{
    if (objects != NULL)
        abort();
    capacity = bytes;
    physical = misaligned = 0;
    capturing = false;
    vmm = true;
}

size_t stand_in_physical(void) { return physical; }
size_t stand_in_reserved(void) { return totals[RESERVATION]; }
size_t stand_in_pinned(void) { return totals[HOST]; }
size_t stand_in_registered(void) { return totals[REGISTERED_HOST]; }
void stand_in_capture(bool running) { capturing = running; }
void stand_in_has_vmm(bool has) { vmm = has; }
void stand_in_misalign(size_t offset) { misaligned = offset; }
unsigned stand_in_last_flags(void) { return last_flags; }

bool stand_in_reaches(int device, tn_cuda_address address)
{
    const object *o = overlap(MAPPING, address, 1);
    return o != NULL && o->access[device];
}
