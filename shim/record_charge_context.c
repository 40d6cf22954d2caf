/* Readings around the making and ending of contexts. There is none yet to ask by before the first one on a device: NVML is asked then. */
#include <stdatomic.h>
#include <unistd.h>

#include "shim/charge_nvml.h"
#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"

#define NEIGHBOURS_TICKS 15000000000u /* 5 s at 3 GHz: a session with NVML takes 5 ms */
#define NVML_AFTER_MAX 4 /* sessions with NVML after a device's last context has ended: a program may reset in a loop */

/* NVML's used figure less the driver's, as seen at the same moment; what the two count differs by a constant. */
static _Atomic int64_t nvml_more[TN_READING_DEVICES];
static _Atomic int nvml_known[TN_READING_DEVICES];
static _Atomic uint64_t baseline[TN_READING_DEVICES];
static _Atomic int after_count;
/* Of the last context's end on a device, where nobody was asked what it gave back: what was in use before it, and its stamp. The next first context's
 * reading, which comes before anything else is there, says so then. */
static struct { _Atomic uint64_t used, begun, flags; } unread_end[TN_READING_DEVICES];
static _Atomic int neighbours_told;       /* NVML tells this process of others */
static _Atomic uint64_t neighbours_asked; /* stamp */

static void charge_event(tn_hook_frame *f, int kind, uint8_t device, uint64_t begun, uint64_t before, uint64_t after, uint64_t flags, int extra)
{
    uint32_t site = kind == TN_CHARGE_CONTEXT ? tn_frame_site(f) : TN_SITE_NONE;
    tn_event *e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->kind = (uint8_t)kind;
    e->device = device;
    e->site = site;
    e->result = extra;
    e->addr = begun;
    e->bytes = before;
    e->aux = after;
    e->aux2 = flags;
    tn_journal_commit(e, TN_EV_CHARGE);
}

/* Every other process that NVML names with a figure, where it names this one too: else its numbers are another namespace's, or it may not say. */
static void neighbours(tn_hook_frame *f, const tn_nvml_session *s, uint8_t device)
{
    tn_nvml_process all[TN_NVML_PROCESSES];
    int count = tn_nvml_processes(s, all), own = 0;
    for (int i = 0; i < count; i++) own |= all[i].pid == (uint32_t)getpid() && all[i].bytes;
    if (own) atomic_store(&neighbours_told, 1);
    for (int i = 0; own && i < count; i++)
        charge_event(f, TN_CHARGE_NEIGHBOUR, device, all[i].pid, all[i].bytes, (uint64_t)i, (uint64_t)count, 0);
}

uint64_t rec_charge_baseline(uint8_t device) { return device < TN_READING_DEVICES ? atomic_load(&baseline[device]) : 0; }

void rec_charge_neighbours(tn_hook_frame *f, uint8_t device)
{
    tn_nvml_session nvml;
    uint64_t now = tn_stamp(), last = atomic_load(&neighbours_asked);
    if (!atomic_load(&neighbours_told) || !atomic_load(&nvml_known[device]) || now - last < NEIGHBOURS_TICKS) return;
    if (!atomic_compare_exchange_strong(&neighbours_asked, &last, now) || !tn_nvml_session_open(&nvml, device)) return;
    neighbours(f, &nvml, device);
    tn_nvml_session_close(&nvml);
}

void rec_ctx_begin(tn_hook_frame *f, int device)
{
    tn_reading r;
    tn_nvml_session nvml;
    if (f->nested || device < 0 || device >= (int)TN_READING_DEVICES) return;
    f->window.device = (uint8_t)device;
    f->before.used = 0;
    f->before.tsc = tn_stamp();
    f->window.making = 1;
    f->window.quiet = 0;
    if (tn_reading_has_context((uint8_t)device)) {
        if (tn_reading_take(f, (uint8_t)device, &r)) {
            f->before.used = r.used;
            f->before.others = r.others;
            f->window.quiet = r.quiet;
        }
        return;
    }
    f->window.making = 2;
    if (!tn_nvml_session_open(&nvml, device)) return;
    f->window.quiet = (uint8_t)tn_nvml_used(&nvml, &f->before.used); /* here: NVML has said how much */
    tn_nvml_session_close(&nvml);
    uint64_t was = atomic_exchange(&unread_end[device].used, 0), now = f->before.used - (uint64_t)atomic_load(&nvml_more[device]);
    if (was && f->window.quiet && now != was)
        charge_event(f, TN_CHARGE_CONTEXT, (uint8_t)device, atomic_load(&unread_end[device].begun), was, now, atomic_load(&unread_end[device].flags), 1);
}

/* The first context of this process on the device: NVML before and after, and the driver after. */
static void first_context(tn_hook_frame *f, const tn_reading *r)
{
    tn_nvml_session nvml;
    uint8_t d = r->device;
    uint64_t flags = r->quiet ? TN_CHARGE_QUIET_BEFORE | TN_CHARGE_QUIET_AFTER : 0;
    uint64_t before = f->before.used, after = 0;
    int known = 0;
    if (f->window.quiet && tn_nvml_session_open(&nvml, d)) {
        known = tn_nvml_used(&nvml, &after);
        if (known) neighbours(f, &nvml, d);
        tn_nvml_session_close(&nvml);
    }
    if (!known) {
        charge_event(f, TN_CHARGE_CONTEXT, d, f->before.tsc, 0, r->used, flags | TN_CHARGE_NO_BEFORE, 0);
        return;
    }
    int64_t more = (int64_t)(after - r->used);
    atomic_store(&nvml_more[d], more);
    /* Of the process's first there: what one that has ended leaves is no other process's. */
    if (!atomic_exchange(&nvml_known[d], 1)) atomic_store(&baseline[d], before > (uint64_t)more ? before - (uint64_t)more : 0);
    charge_event(f, TN_CHARGE_BASELINE, d, f->before.tsc, before - (uint64_t)more, before, (uint64_t)more, 0);
    charge_event(f, TN_CHARGE_CONTEXT, d, f->before.tsc, before - (uint64_t)more, r->used, flags | (r->quiet ? TN_CHARGE_ALONE : 0u), 0);
}

void rec_ctx_made(tn_hook_frame *f, int device, void *context)
{
    tn_reading r;
    int making = f->window.making;
    f->window.making = 0;
    if (f->nested || device < 0 || device >= (int)TN_READING_DEVICES || !context) return;
    tn_reading_context((uint8_t)device, context);
    if (!making || !tn_reading_take(f, (uint8_t)device, &r)) return;
    if (making == 2) {
        first_context(f, &r);
        return;
    }
    uint64_t flags = (f->window.quiet ? TN_CHARGE_QUIET_BEFORE : 0u) | (r.quiet ? TN_CHARGE_QUIET_AFTER : 0u) |
                     (f->window.quiet && r.quiet && f->before.others == r.others ? TN_CHARGE_ALONE : 0u);
    if (f->before.used && f->before.used != r.used) charge_event(f, TN_CHARGE_CONTEXT, r.device, f->before.tsc, f->before.used, r.used, flags, 0);
}

void rec_ctx_end_begin(tn_hook_frame *f, void *context, int device)
{
    tn_reading r;
    f->window.making = 0;
    if (f->nested || !context) return;
    if (device < 0) device = tn_context_of(f, context, -1).device;
    if (device >= (int)TN_READING_DEVICES) return;
    if (tn_reading_take(f, (uint8_t)device, &r)) {
        f->window.making = 3;
        f->window.device = (uint8_t)device;
        f->before.used = r.used;
        f->before.others = r.others;
        f->window.quiet = r.quiet;
        f->before.tsc = r.tsc;
    }
    tn_reading_context_ends(context);
}

void rec_ctx_end_done(tn_hook_frame *f, int still_alive, void *context)
{
    tn_reading r;
    tn_nvml_session nvml;
    uint8_t d = f->window.device;
    if (f->window.making != 3) return;
    f->window.making = 0;
    if (still_alive) tn_reading_context(d, context);
    int had = tn_reading_has_context(d) && tn_reading_take(f, d, &r);
    if (!had && atomic_load(&nvml_known[d]) && atomic_fetch_add(&after_count, 1) < NVML_AFTER_MAX && tn_nvml_session_open(&nvml, d)) {
        uint64_t used = 0;
        had = tn_nvml_used(&nvml, &used);
        tn_nvml_session_close(&nvml);
        r = (tn_reading){.used = used - (uint64_t)atomic_load(&nvml_more[d]), .others = f->before.others, .device = d, .quiet = f->window.quiet};
    }
    if (!had && atomic_load(&nvml_known[d]) && !tn_reading_has_context(d)) {
        atomic_store(&unread_end[d].begun, f->before.tsc);
        atomic_store(&unread_end[d].flags, f->window.quiet ? TN_CHARGE_QUIET_BEFORE | TN_CHARGE_QUIET_AFTER | TN_CHARGE_ALONE : 0u);
        atomic_store(&unread_end[d].used, f->before.used);
    }
    if (!had || r.used == f->before.used) return;
    uint64_t flags = (f->window.quiet ? TN_CHARGE_QUIET_BEFORE : 0u) | (r.quiet ? TN_CHARGE_QUIET_AFTER : 0u) |
                     (f->window.quiet && r.quiet && f->before.others == r.others ? TN_CHARGE_ALONE : 0u);
    charge_event(f, TN_CHARGE_CONTEXT, d, f->before.tsc, f->before.used, r.used, flags, 1);
}
