/* libtenure_nvtx.so: the program's NVTX marks and ranges, told to libtenure.so. A library of its own because NVTX looks for an export
 * of a fixed name in the file that NVTX_INJECTION64_PATH names. It holds no lock, calls no CUDA, and where libtenure.so is not in
 * the process it declines, so that NVTX stays off. Handles that it gives out live as long as the process: NVTX never says that a string
 * is done with. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

/* shim/glibc_compat.h leaves this one out, because libtenure.so defines it. */
TN_BIND(dlsym, "2.2.5", "2.17");

#define TEXT 200

static int (*tell)(int begin, const char *text, unsigned long long range);
static uint64_t ranges;
static __thread int depth __attribute__((tls_model("initial-exec")));

enum { END = 0, BEGIN = 1, POINT = 2 };

/* ---- texts */

/* A string or a domain that the program registered. */
typedef struct registered { char text[TEXT]; } registered;

enum { SLAB = 64 };
typedef struct slab {
    uint32_t used; /* atomic; may go beyond SLAB */
    registered texts[SLAB];
} slab;

/* NULL where no memory is left: then the text is unknown. No lock: a handler may come between, and a fork may leave it behind. */
static registered *keep(const char *text)
{
    static slab *newest;
    int saved = errno;
    registered *r = NULL;
    while (!r) {
        slab *s = __atomic_load_n(&newest, __ATOMIC_ACQUIRE);
        uint32_t at = s ? __atomic_fetch_add(&s->used, 1, __ATOMIC_RELAXED) : SLAB;
        if (at < SLAB) {
            r = &s->texts[at];
            strncpy(r->text, text, sizeof r->text - 1);
            continue;
        }
        void *made = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED) break;
        if (!__atomic_compare_exchange_n(&newest, &s, (slab *)made, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) munmap(made, sizeof *s);
    }
    errno = saved;
    return r;
}

static void narrow(const wchar_t *wide, char out[TEXT])
{
    size_t n = 0;
    for (; wide && *wide && n + 5 < TEXT; wide++) {
        uint32_t c = (uint32_t)*wide;
        if (c < 0x80) {
            out[n++] = (char)c;
        } else if (c < 0x800) {
            out[n++] = (char)(0xc0 | c >> 6);
            out[n++] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            out[n++] = (char)(0xe0 | c >> 12);
            out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[n++] = (char)(0x80 | (c & 0x3f));
        } else {
            out[n++] = (char)(0xf0 | (c >> 18 & 7));
            out[n++] = (char)(0x80 | (c >> 12 & 0x3f));
            out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[n++] = (char)(0x80 | (c & 0x3f));
        }
    }
    out[n] = 0;
}

static void append(char out[TEXT], const char *text)
{
    size_t n = strlen(out), m = text ? strlen(text) : 0;
    if (m > TEXT - 1 - n) m = TEXT - 1 - n;
    memcpy(out + n, text, m);
    out[n + m] = 0;
}

/* "DOMAIN: MESSAGE". */
static void message(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a, char out[TEXT])
{
    char wide[TEXT];
    out[0] = 0;
    if (domain) {
        append(out, ((const registered *)domain)->text);
        append(out, ": ");
    }
    if (!a || a->size < offsetof(nvtxEventAttributes_t, message) + sizeof a->message) return;
    switch (a->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
        append(out, a->message.ascii);
        break;
    case NVTX_MESSAGE_TYPE_UNICODE:
        narrow(a->message.unicode, wide);
        append(out, wide);
        break;
    case NVTX_MESSAGE_TYPE_REGISTERED:
        if (a->message.registered) append(out, ((const registered *)a->message.registered)->text);
        break;
    default:
        break;
    }
}

/* ---- NVTX's functions */

static void mark_a(const char *text) { tell(POINT, text ? text : "", 0); }

static void mark_w(const wchar_t *text)
{
    char narrowed[TEXT];
    narrow(text, narrowed);
    mark_a(narrowed);
}

static void domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    char text[TEXT];
    message(domain, a, text);
    mark_a(text);
}

static void mark_ex(const nvtxEventAttributes_t *a) { domain_mark(NULL, a); }

static nvtxRangeId_t start_a(const char *text)
{
    uint64_t id = 1 + __atomic_fetch_add(&ranges, 1, __ATOMIC_RELAXED);
    tell(BEGIN, text ? text : "", id);
    return id;
}

static nvtxRangeId_t start_w(const wchar_t *text)
{
    char narrowed[TEXT];
    narrow(text, narrowed);
    return start_a(narrowed);
}

static nvtxRangeId_t domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    char text[TEXT];
    message(domain, a, text);
    return start_a(text);
}

static nvtxRangeId_t start_ex(const nvtxEventAttributes_t *a) { return domain_start(NULL, a); }

static void end(nvtxRangeId_t id)
{
    if (id) tell(END, NULL, id);
}

static void domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    (void)domain;
    end(id);
}

static int push_a(const char *text)
{
    tell(BEGIN, text ? text : "", 0);
    return depth++;
}

static int push_w(const wchar_t *text)
{
    char narrowed[TEXT];
    narrow(text, narrowed);
    return push_a(narrowed);
}

static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
    char text[TEXT];
    message(domain, a, text);
    return push_a(text);
}

static int push_ex(const nvtxEventAttributes_t *a) { return domain_push(NULL, a); }

static int pop(void)
{
    if (depth == 0) return -1;
    tell(END, NULL, 0);
    return --depth;
}

static int domain_pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    return pop();
}

static nvtxStringHandle_t register_a(nvtxDomainHandle_t domain, const char *text)
{
    (void)domain;
    return (nvtxStringHandle_t)keep(text ? text : "");
}

static nvtxStringHandle_t register_w(nvtxDomainHandle_t domain, const wchar_t *text)
{
    char narrowed[TEXT];
    narrow(text, narrowed);
    return register_a(domain, narrowed);
}

static nvtxDomainHandle_t create_a(const char *name) { return (nvtxDomainHandle_t)keep(name ? name : ""); }

static nvtxDomainHandle_t create_w(const wchar_t *name)
{
    char narrowed[TEXT];
    narrow(name, narrowed);
    return create_a(narrowed);
}

/* ---- the injection */

typedef struct slot { unsigned id; NvtxFunctionPointer function; } slot;
#define SLOT(id, function) {id, (NvtxFunctionPointer)(function)}

static const slot core[] = {
    SLOT(NVTX_CBID_CORE_MarkEx, mark_ex),           SLOT(NVTX_CBID_CORE_MarkA, mark_a),           SLOT(NVTX_CBID_CORE_MarkW, mark_w),
    SLOT(NVTX_CBID_CORE_RangeStartEx, start_ex),    SLOT(NVTX_CBID_CORE_RangeStartA, start_a),    SLOT(NVTX_CBID_CORE_RangeStartW, start_w),
    SLOT(NVTX_CBID_CORE_RangeEnd, end),             SLOT(NVTX_CBID_CORE_RangePushEx, push_ex),    SLOT(NVTX_CBID_CORE_RangePushA, push_a),
    SLOT(NVTX_CBID_CORE_RangePushW, push_w),        SLOT(NVTX_CBID_CORE_RangePop, pop),
};
static const slot core2[] = {
    SLOT(NVTX_CBID_CORE2_DomainMarkEx, domain_mark),          SLOT(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start),
    SLOT(NVTX_CBID_CORE2_DomainRangeEnd, domain_end),         SLOT(NVTX_CBID_CORE2_DomainRangePushEx, domain_push),
    SLOT(NVTX_CBID_CORE2_DomainRangePop, domain_pop),         SLOT(NVTX_CBID_CORE2_DomainRegisterStringA, register_a),
    SLOT(NVTX_CBID_CORE2_DomainRegisterStringW, register_w),  SLOT(NVTX_CBID_CORE2_DomainCreateA, create_a),
    SLOT(NVTX_CBID_CORE2_DomainCreateW, create_w),
};

/* Functions that a program's NVTX is too old to have are left out. */
static int fill(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module, const slot *slots, size_t count)
{
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(module, &table, &size) || !table) return 0;
    for (size_t i = 0; i < count; i++)
        if (slots[i].id < size && table[slots[i].id]) *table[slots[i].id] = slots[i].function;
    return 1;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

/* What NVTX calls once, at the program's first NVTX call: 1 taken, 0 declined. */
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    union { void *object; int (*function)(int, const char *, unsigned long long); } found;
    const NvtxExportTableCallbacks *callbacks = get_table ? get_table(NVTX_ETID_CALLBACKS) : NULL;
    found.object = dlsym(RTLD_DEFAULT, "tenure_v1_range");
    if (!found.object || !callbacks || callbacks->struct_size < sizeof *callbacks || !callbacks->GetModuleFunctionTable) return 0;
    tell = found.function;
    return fill(callbacks, NVTX_CB_MODULE_CORE, core, sizeof core / sizeof core[0]) |
           fill(callbacks, NVTX_CB_MODULE_CORE2, core2, sizeof core2 / sizeof core2[0]);
}
