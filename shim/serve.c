/* The plan of this process: loaded, held against the program, and looked up by site. */
#include "shim/serve.h"

#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/tn_hot_data.h"
#include "planner/plan_load.h"
#include "planner/program_script.h"
#include "shim/callsite_keys.h"
#include "shim/gate.h"
#include "shim/modules.h"
#include "shim/pages.h"
#include "shim/serve_checks.h"
#include "shim/serve_marks.h"
#include "shim/serve_short.h"

TN_HOT_DATA int tn_serving;
static tn_plan *plan;
static TN_HOT_DATA tn_serve_section sections[TN_SERVE_DEVICES];
static int strict, misfit_native, free_waits, pin_regions;
static uint64_t budget;

/* Blocks of whole pages: what serves is made once a context and consists of some dozen pieces. */
static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    void *moved = NULL;
    if (new_bytes) {
        moved = tn_pages(new_bytes);
        if (!moved) return NULL;
        if (block) memcpy(moved, block, old_bytes < new_bytes ? old_bytes : new_bytes);
    }
    if (block) tn_pages_free(block, old_bytes);
    return moved;
}

const tn_metadata tn_serve_metadata = {.resize = resize};

/* The plan itself is many small pieces, and lives as long as the process: they are carved from larger ones and never given back. */
static char *piece, *piece_end;
static void *carve(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    if (!new_bytes) return NULL;
    size_t bytes = (new_bytes + 15) & ~(size_t)15;
    if (bytes < new_bytes) return NULL;
    if ((size_t)(piece_end - piece) < bytes) {
        size_t room = bytes > (1u << 20) ? bytes : 1u << 20;
        char *more = tn_pages(room);
        if (!more) return NULL;
        piece = more;
        piece_end = more + room;
    }
    void *at = piece;
    piece += bytes;
    if (block) memcpy(at, block, old_bytes < new_bytes ? old_bytes : new_bytes);
    return at;
}
static const tn_metadata plan_memory = {.resize = carve};

/* Where a person looks, and in the journal. */
void tn_serve_say(const char *text)
{
    char line[TN_PLAN_MESSAGE + 64];
    int n = snprintf(line, sizeof line, "tenure: %s\n", text);
    if (n > 0) (void)!syscall(SYS_write, STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
    tn_coverage(TN_COV_NOTE, text);
}

void tn_serve_not_started(void)
{
    static _Atomic int said;
    const char *of = secure_getenv("TENURE_PLAN");
    if (!of || !*of || atomic_exchange(&said, 1)) return;
    const char *run = secure_getenv("TENURE_RUN");
    tn_serve_say(run && *run ? "TENURE_PLAN is not followed: the folder that TENURE_RUN names has no room for a journal, or is not there"
                             : "TENURE_PLAN is not followed: TENURE_RUN names no folder for the journal, which serving needs");
}

/* The sections for this program, one a device. How many there are. */
static int choose(const tn_journal_header *h)
{
    char script[TN_PROGRAM_SCRIPT];
    int found = 0, has_script = tn_program_script(h->exe, h->cmdline, sizeof h->cmdline, script, sizeof script);
    for (uint32_t device = 0; device < TN_SERVE_DEVICES; device++) {
        const char *name = has_script ? script : NULL;
        const tn_plan_section *s = h->exe_build_id[0] ? tn_plan_section_for(plan, h->exe_build_id, name, device) : NULL;
        if (!s) s = tn_plan_section_named(plan, h->exe, name, device);
        if (!s) continue;
        uint32_t *rows = tn_pages(TN_SITE_KEYS_MAX * sizeof *rows);
        if (!rows) continue;
        sections[device] = (tn_serve_section){s, rows, plan->gap};
        found++;
    }
    return found;
}

static int is_set(const char *name, const char *value)
{
    const char *text = secure_getenv(name);
    return text && strcmp(text, value) == 0;
}

/* A whole number of bytes, as the command writes it; 0 where the variable is none. */
static uint64_t bytes_of(const char *name)
{
    uint64_t n = 0;
    for (const char *c = secure_getenv(name); c && *c; c++) {
        if (*c < '0' || *c > '9' || n > UINT64_MAX / 16) return 0;
        n = n * 10 + (uint64_t)(*c - '0');
    }
    return n;
}

/* Under compute-sanitizer, and what else is built on its library, a block's bounds must be the driver's, or what it is for is lost. */
static int is_sanitizer_name(const char *path)
{
    return strncmp(tn_basename(path), "libsanitizer-collection", 23) == 0 || strncmp(tn_basename(path), "libsanitizer-public", 19) == 0;
}

static int is_sanitizer(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    return info->dlpi_name && is_sanitizer_name(info->dlpi_name);
}

/* It is there, or the driver is going to load it as it starts. */
static int finds_sanitizer(void)
{
    const char *injected = secure_getenv("CUDA_INJECTION64_PATH");
    int found = injected && is_sanitizer_name(injected);
    tn_loader_enter();
    if (!found && !tn_loader_forked()) found = dl_iterate_phdr(is_sanitizer, NULL);
    tn_loader_leave();
    if (found) tn_coverage(TN_COV_TURNED_OFF, "serving by the plan, under compute-sanitizer: it knows allocations by the driver's calls alone");
    return found;
}

static int stopped;

int tn_serve_finds_sanitizer(void)
{
    if (!finds_sanitizer()) return 0;
    tn_serve_short_close();
    __atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
    return 1;
}

void tn_serve_start(tn_journal *journal)
{
    static char message[TN_PLAN_MESSAGE];
    const char *path = secure_getenv("TENURE_PLAN");
    if (!path || !*path) return;
    if (finds_sanitizer()) return;
    if (tn_plan_load(path, TN_PLAN_WITHOUT_NAMES, &plan_memory, &plan, message) != TN_OK) {
        tn_serve_say(message);
        return;
    }
    if (!choose(tn_journal_header_of(journal))) {
        snprintf(message, sizeof message, "%.1000s: the plan names other programs than this one, which runs unplaced", path);
        tn_coverage(TN_COV_NOTE, message); /* a helper process is nothing to be told of */
        return;
    }
    strict = is_set("TENURE_STRICT", "1");
    free_waits = is_set("TENURE_FREE_WAITS", "1");
    pin_regions = is_set("TENURE_PIN_REGIONS", "1");
    budget = bytes_of("TENURE_BUDGET");
    if (!budget && secure_getenv("TENURE_BUDGET")) tn_serve_say("TENURE_BUDGET is no whole number of bytes from 1 on: the plan's own budget holds, if it has one");
    if (!budget) budget = plan->budget;
    misfit_native = is_set("TENURE_MISFIT", "native");
    tn_serve_checks_start();
    if (tn_site_keys_start() != 0 || tn_serve_marks_start() != 0) {
        tn_serve_say("no memory left to serve by the plan: the program runs unplaced");
        return;
    }
    tn_serving = 1;
    if (!free_waits && !tn_serve_checks) atomic_store(&tn_hot_page->serves, 1); /* what does more to a block than to find its place is on the long way alone */
}

const tn_serve_section *tn_serve_section_of(uint8_t device)
{
    return device < TN_SERVE_DEVICES && sections[device].plan ? &sections[device] : NULL;
}

static uint32_t look_up(const tn_serve_section *s, uint32_t site)
{
    if (site < TN_SITE_FIRST || site >= TN_SITE_KEYS_MAX) return TN_SERVE_NO_ROW;
    const tn_plan_row *row = tn_plan_row_of(s->plan, tn_site_keys[site].key, tn_site_keys[site].python);
    return row ? (uint32_t)(row - s->plan->rows) : TN_SERVE_NO_ROW;
}

uint32_t tn_serve_row(const tn_serve_section *s, uint32_t site)
{
    if (site >= TN_SITE_KEYS_MAX) return TN_SERVE_NO_ROW;
    uint32_t known = __atomic_load_n(&s->row_of_site[site], __ATOMIC_RELAXED);
    if (__builtin_expect(!known, 0)) {
        uint32_t row = look_up(s, site);
        known = row == TN_SERVE_NO_ROW ? 1 : row + 2;
        __atomic_store_n(&s->row_of_site[site], known, __ATOMIC_RELAXED);
    }
    return known == 1 ? TN_SERVE_NO_ROW : known - 2;
}

int tn_serve_misfit_is_native(void) { return misfit_native; }
int tn_serve_is_strict(void) { return strict; }
int tn_serve_pins_regions(void) { return pin_regions; }
int tn_serve_frees_wait(void) { return free_waits; }
uint64_t tn_serve_budget(void) { return budget; }

void tn_serve_say_misfit(const tn_serve_section *s, tn_mem_error error)
{
    static int said;
    char text[512];
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) return;
    int n = snprintf(text, sizeof text, "the plan's arenas could not be had on device %u: %s; they are", s->plan->device, tn_mem_error_text(error));
    for (size_t i = 0; i < s->plan->tier_count && n > 0 && (size_t)n < sizeof text; i++) {
        const tn_plan_tier *t = &s->plan->tiers[i];
        n += snprintf(text + n, sizeof text - (size_t)n, "%s %s %s %llu MiB", i ? "," : "", tn_discipline_name(t->discipline), tn_family_name(t->family),
                      (unsigned long long)(t->capacity >> 20));
    }
    tn_serve_say(text);
}

static int peers;

void tn_serve_stop(void)
{
    tn_serve_short_close();
    if (!__atomic_exchange_n(&stopped, 1, __ATOMIC_RELAXED))
        tn_coverage(TN_COV_TURNED_OFF, "serving by the plan, from here on: a runtime's calls pass the hooks by, and nobody knows when its work is done");
}

int tn_serve_is_stopped(void) { return __atomic_load_n(&stopped, __ATOMIC_RELAXED); }

void tn_serve_peers(void) { __atomic_store_n(&peers, 1, __ATOMIC_RELAXED); }
int tn_serve_has_peers(void) { return __atomic_load_n(&peers, __ATOMIC_RELAXED); }
