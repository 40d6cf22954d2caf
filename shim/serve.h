/* Serving by a plan: what the hooks of memory calls ask before they call the driver. The plan is loaded once, where this process starts to record
 * (TENURE_PLAN); arenas belong to a context and come with the first request of a planned site there. All of it runs on the calling thread inside
 * its hook; any thread. Without a plan tn_serving is 0 and nothing here is called. */
#ifndef TENURE_SHIM_SERVE_H
#define TENURE_SHIM_SERVE_H

#include <stdint.h>

#include "ledger/journal_format.h"
#include "planner/plan.h"
#include "serve/marks.h"
#include "serve/place.h"
#include "shim/hook.h"
#include "shim/identity.h"

extern int tn_serving __attribute__((visibility("hidden"))); /* a plan is loaded that names this program */

/* Loads the plan that TENURE_PLAN names; `journal_header` says which program this is. Inside the start of recording, before the first site is found. A plan
 * that cannot be read, or that names another program, is said once on standard error and in the journal; the program then runs unplaced. */
void tn_serve_start(tn_journal *journal);
/* Where nothing is recorded, and so nothing served: says that on standard error, once, if TENURE_PLAN asks for it. Any thread. */
void tn_serve_not_started(void);

/* ---- serve.c: the plan */
typedef struct tn_serve_section {
    const tn_plan_section *plan; /* NULL: none for this device */
    uint32_t *row_of_site;       /* by site id: 0 not looked up, 1 not in the plan, else row + 2 */
    uint64_t gap;                /* bytes that the plan leaves behind each block */
} tn_serve_section;

#define TN_SERVE_DEVICES 64
#define TN_SERVE_NO_ROW UINT32_MAX
/* The section for a device ordinal of this process; NULL. */
const tn_serve_section *tn_serve_section_of(uint8_t device) __attribute__((hot));
/* What a tier is asked for: the block and its gap. */
static inline uint64_t tn_serve_asked(const tn_serve_section *s, uint64_t bytes) { return bytes > UINT64_MAX - s->gap ? bytes : bytes + s->gap; }
/* The plan's row for a site, TN_SERVE_NO_ROW. */
uint32_t tn_serve_row(const tn_serve_section *s, uint32_t site) __attribute__((hot));
/* Whether a planned request may go to the driver where the arenas could not be had (TENURE_MISFIT=native), and where they have no place for it. */
/* Work is enqueued where no hook sees it: from now on nothing more is handed out, for nobody knows when it is done. Frees go on. */
void tn_serve_stop(void);
int tn_serve_is_stopped(void);
/* Looks again for a tool that must see every allocation of the driver's, which may have come since the start: then nothing more is handed out, and it is
 * said. Takes the loader's lock: before the first arenas, and the first answer about memory. */
int tn_serve_finds_sanitizer(void);
/* Peers reach this process's blocks: what is freed waits for the work of every context. */
void tn_serve_peers(void);
int tn_serve_has_peers(void);
/* One sentence on standard error and in the journal. */
void tn_serve_say(const char *text);
/* Says once what the device could not hold. */
void tn_serve_say_misfit(const tn_serve_section *s, tn_mem_error error);
int tn_serve_misfit_is_native(void);
int tn_serve_is_strict(void);
/* Whether plain and pinned frees of served blocks wait for the device, as the driver's own do (TENURE_FREE_WAITS=1). */
int tn_serve_frees_wait(void);
/* Whether T1's empty regions stay with the process (TENURE_PIN_REGIONS=1). */
int tn_serve_pins_regions(void);
/* The budget in bytes: of the command (TENURE_BUDGET), else the plan's; 0: none. */
uint64_t tn_serve_budget(void);
extern const tn_metadata tn_serve_metadata; /* pages of our own */

/* ---- serve_places.c: the arenas */
/* The arenas of a context, current on this thread; acquired now where they are not there yet. NULL: there are none, and *misfit says that they could
 * not be had. */
tn_place *tn_serve_place(tn_hook_frame *f, tn_context c, const tn_serve_section *s, int *misfit);
/* Those that a context has, by its number, also after it ended; NULL. */
tn_place *tn_serve_place_of(uint32_t ctx);
/* Those that a context has whose requests are served now; NULL. */
tn_place *tn_serve_place_ready(uint32_t ctx) __attribute__((hot));
#define TN_SERVE_POOL_STEP ((uint64_t)32 << 20) /* by which the driver's pools grow */

/* Bytes of the arenas on a device: plain ones as the driver backs them, and those of its default pool. Returns what serving takes in all: both, the
 * pool's in steps, pools of handles, and what came with the arenas where that could be seen (a stream, page tables of pinned arenas). */
uint64_t tn_serve_held(uint8_t device, uint64_t *plain, uint64_t *pooled);
/* Whether there are arenas, or were. */
int tn_serve_has_arenas(void);
/* Whether the address lies in memory of a tier, whoever has it now. */
int tn_serve_owns(uint64_t addr) __attribute__((hot));
/* A reading around this call, or around the runtime's above it, would take the memory of a tier for the call's own. */
void tn_serve_no_reading(tn_hook_frame *f);
/* Under whose hook regions come and go on this thread; NULL afterwards. */
void tn_serve_frame(tn_hook_frame *f);
/* The context has ended, or was reset: what it had is gone with it, without a call of the driver. */
void tn_serve_context_ended(uint32_t ctx);

#endif
