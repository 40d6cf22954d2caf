/* Captures and graphs, as far as blocks of a tier are in them. What is freed between a capture's begin and the reading of its graph's nodes may
 * be in the graph, and nobody knows yet: it goes to nobody until then. What the nodes of an executable graph hold goes to no other site
 * for as long as that graph is there. */
#include "shim/serve_graphs.h"

#include <stdatomic.h>

#include "ledger/tn_hot_data.h"
#include "ledger/tn_lock.h"
#include "shim/map.h"
#include "shim/pages.h"
#include "shim/serve_calls.h"

#define KEPT_MAX 65536u
#define HOLDS_MAX (1u << 20)
#define RANK_KEPT 170 /* what is given back takes a tier's lock, which has no rank and calls nothing */

TN_HOT_DATA _Atomic int tn_serve_unread;
static tn_map unread_graphs = TN_MAP_INIT; /* (graph, 0) */

static tn_lock kept_lock = TN_LOCK_INIT(RANK_KEPT);
static tn_serve_kept *kept;
static uint32_t kept_count;

static tn_lock holds_lock = TN_LOCK_INIT(RANK_KEPT);
static struct hold { const void *exec; tn_place *place; void *address; uint32_t row; } *holds;
static uint32_t hold_count;

int tn_serve_keep(const tn_serve_kept *block)
{
    if (!atomic_load(&tn_serve_unread)) return 0;
    int done = 0;
    tn_lock_take(&kept_lock);
    if (atomic_load(&tn_serve_unread)) {
        if (!kept) kept = tn_pages(KEPT_MAX * sizeof *kept);
        /* Where there is no room it stays a live block of the tier for good: lost, and nobody's data. */
        if (kept && kept_count < KEPT_MAX) kept[kept_count++] = *block;
        else tn_coverage(TN_COV_NOTE, "more blocks were freed while graphs were captured and not read than are kept: what those beyond had is lost to their tiers");
        done = 1;
    }
    tn_lock_release(&kept_lock);
    return done;
}

/* With no lock held: a block may be the last of a region, which goes back by the driver's free. */
static void give_back(tn_serve_kept *blocks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)(tn_place_give(blocks[i].place, blocks[i].row, blocks[i].address, blocks[i].stream, &blocks[i].uncovered) == TN_MEM_OK);
    if (blocks) tn_pages_free(blocks, KEPT_MAX * sizeof *blocks);
}

static void read_one(void)
{
    tn_serve_kept *blocks = NULL;
    uint32_t count = 0;
    if (atomic_fetch_sub(&tn_serve_unread, 1) != 1) return;
    tn_lock_take(&kept_lock);
    if (!atomic_load(&tn_serve_unread)) {
        blocks = kept;
        count = kept_count;
        kept = NULL;
        kept_count = 0;
    }
    tn_lock_release(&kept_lock);
    give_back(blocks, count);
}

void tn_serve_capture_began(void) { atomic_fetch_add(&tn_serve_unread, 1); }

void tn_serve_capture_ended(const void *graph)
{
    uint64_t one = 1;
    if (!graph || tn_map_add(&unread_graphs, (uint64_t)graph, 0, &one) != 1) read_one();
}

void tn_serve_graph_was_read(const void *graph)
{
    if (graph && tn_map_remove(&unread_graphs, (uint64_t)graph, 0, NULL)) read_one();
}

void tn_serve_graph_holds(const void *exec, const tn_entry *block)
{
    tn_place *place = tn_is_served(block) ? tn_serve_place_of(block->ctx) : NULL;
    const tn_serve_section *s = place ? tn_serve_section_of(block->device) : NULL;
    uint32_t row = s ? tn_serve_row(s, block->site) : TN_SERVE_NO_ROW;
    void *address = (void *)(uintptr_t)block->addr;
    if (row == TN_SERVE_NO_ROW) return;
    tn_lock_take(&holds_lock);
    if (!holds) holds = tn_pages(HOLDS_MAX * sizeof *holds);
    int known = 0;
    for (uint32_t i = hold_count; i > 0 && holds && holds[i - 1].exec == exec && !known; i--) known = holds[i - 1].address == address;
    if (!known && (!holds || hold_count == HOLDS_MAX))
        tn_coverage(TN_COV_NOTE, "graphs hold more served blocks than are kept: addresses of those beyond may go to other sites once they are freed");
    else if (!known && tn_place_hold(place, row, address) == TN_MEM_OK)
        holds[hold_count++] = (struct hold){exec, place, address, row};
    tn_lock_release(&holds_lock);
}

void tn_serve_exec_gone(const void *exec)
{
    tn_lock_take(&holds_lock);
    uint32_t kept_holds = 0;
    for (uint32_t i = 0; i < hold_count; i++) {
        if (holds[i].exec == exec) (void)(tn_place_release_hold(holds[i].place, holds[i].row, holds[i].address) == TN_MEM_OK);
        else holds[kept_holds++] = holds[i];
    }
    hold_count = kept_holds;
    tn_lock_release(&holds_lock);
}

void tn_serve_graphs_forget(const tn_place *place)
{
    uint32_t left = 0;
    tn_lock_take(&kept_lock);
    for (uint32_t i = 0; i < kept_count; i++)
        if (kept[i].place != place) kept[left++] = kept[i];
    kept_count = left;
    tn_lock_release(&kept_lock);
    left = 0;
    tn_lock_take(&holds_lock);
    for (uint32_t i = 0; i < hold_count; i++)
        if (holds[i].place != place) holds[left++] = holds[i];
    hold_count = left;
    tn_lock_release(&holds_lock);
}
