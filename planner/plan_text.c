/* The tables. Bytes stand in MiB with three places, so that they can be added up by eye; files have the exact ones. */
#include "planner/plan_text.h"

#include <inttypes.h>
#include <string.h>

#include "planner/classify.h"

static const char *mib(uint64_t bytes, char out[32])
{
    uint64_t thousandths = (bytes >> 20) * 1000 + ((bytes & ((1u << 20) - 1)) * 1000 >> 20);
    snprintf(out, 32, "%" PRIu64 ".%03" PRIu64, thousandths / 1000, thousandths % 1000);
    return out;
}

static const char *ratio(uint64_t a, uint64_t b, char out[16])
{
    if (b == 0)
        snprintf(out, 16, "-");
    else
        snprintf(out, 16, "%.4f", (double)a / (double)b);
    return out;
}

char *tn_plan_row_words(const tn_plan_row *row, char *out, size_t size)
{
    if (row->python_frame_count && row->python_frames[0]) {
        snprintf(out, size, "%s", row->python_frames[0]);
        return out;
    }
    if (row->frame_count == 0) {
        snprintf(out, size, "no stack");
        return out;
    }
    const tn_plan_frame *f = &row->frames[0];
    const char *slash = f->file ? strrchr(f->file, '/') : NULL;
    if (f->function && f->file)
        snprintf(out, size, "%s (%s:%" PRIu32 ")", f->function, slash ? slash + 1 : f->file, f->line);
    else if (f->function)
        snprintf(out, size, "%s in %s", f->function, f->module ? f->module : "an unknown module");
    else
        snprintf(out, size, "%s+0x%" PRIx64, f->module ? f->module : "unknown module", f->offset);
    return out;
}

static void put_tier_name(const tn_plan_tier *t, char *out, size_t size)
{
    if (t->family == TN_FAMILY_HANDLE)
        snprintf(out, size, "%s %s, %" PRIu64 " KiB", tn_discipline_name(t->discipline), tn_family_name(t->family), t->block >> 10);
    else if (t->family == TN_FAMILY_PINNED)
        snprintf(out, size, "%s %s, flags %" PRIu32, tn_discipline_name(t->discipline), tn_family_name(t->family), t->detail);
    else
        snprintf(out, size, "%s %s", tn_discipline_name(t->discipline), tn_family_name(t->family));
}

static uint64_t tier_bytes(const tn_plan_tier *t)
{
    return t->capacity * (t->discipline == TN_D_T4 ? t->streams : 1);
}

static void print_tiers(const tn_plan_section *s, FILE *out)
{
    char a[32], b[32], c[16], name[64];
    fprintf(out, "  %-22s %7s %7s %14s %14s %8s %14s\n", "tier", "sites", "slots", "capacity MiB", "live peak MiB", "ratio", "with waits MiB");
    for (size_t i = 0; i < s->tier_count; i++) {
        const tn_plan_tier *t = &s->tiers[i];
        put_tier_name(t, name, sizeof name);
        fprintf(out, "  %-22s %7" PRIu64 " ", name, t->sites);
        if (t->slots)
            fprintf(out, "%7" PRIu64, t->slots);
        else
            fprintf(out, "%7s", "");
        fprintf(out, " %14s %14s %8s", mib(tier_bytes(t), a), mib(t->live_peak, b), ratio(tier_bytes(t), t->live_peak, c));
        if (t->with_waits)
            fprintf(out, " %14s", mib(t->with_waits, a));
        fputc('\n', out);
    }
}

static void print_sums(const tn_plan_section *s, FILE *out)
{
    char a[32], b[32];
    uint64_t tiers = 0, waits = 0;
    for (size_t i = 0; i < s->tier_count; i++) {
        const tn_plan_tier *t = &s->tiers[i];
        if (t->family == TN_FAMILY_PINNED)
            continue;
        tiers += tier_bytes(t);
        waits += t->with_waits ? t->with_waits : tier_bytes(t);
    }
    fprintf(out, "  device tiers together %s MiB; with a wait at every free %s MiB; the device's own live peak %s MiB\n", mib(tiers, a),
            mib(waits, b), mib(s->device_live_peak, (char[32]){0}));
    fprintf(out, "  left to the driver    %s MiB\n", mib(s->native_bytes, a));
    for (size_t i = 0; i < s->charge_count; i++)
        fprintf(out, "  charge %-15s %s MiB  (%s%s%s)\n", s->charges[i].name, mib(s->charges[i].bytes, a), s->charges[i].source ? s->charges[i].source : "",
                s->charges[i].date ? ", " : "", s->charges[i].date ? s->charges[i].date : "");
    fprintf(out, "  total                 %s MiB\n", mib(s->total, a));
}

static void print_packed(const tn_plan_section *s, FILE *out)
{
    char a[32];
    for (size_t i = 0; i < s->tier_count; i++) {
        const tn_plan_tier *t = &s->tiers[i];
        char name[64];
        if (!t->slots || t->family == TN_FAMILY_HANDLE)
            continue;
        put_tier_name(t, name, sizeof name);
        fprintf(out, "  %s: no layout of its slots is below %s MiB; ", name, mib(t->lower_bound, a));
        if (t->shared == 0)
            fputs("no address is used by two sites\n", out);
        else
            fprintf(out, "%" PRIu64 " of %" PRIu64 " hand-outs use an address that another site had, the nearest %" PRIu64 " hand-out%s after\n", t->shared,
                    t->hand_outs, t->nearest, t->nearest == 1 ? "" : "s");
    }
}

static int is_varying(const tn_plan_row *row)
{
    return row->varies && row->discipline != TN_D_NATIVE && !row->headroom && !row->room.given;
}

/* The largest first, of equals the first. It looks at all of them: for few. */
static const tn_plan_row *next_varying(const tn_plan_section *s, const tn_plan_row *before)
{
    const tn_plan_row *next = NULL;
    for (const tn_plan_row *row = s->rows; row < s->rows + s->row_count; row++) {
        if (!is_varying(row))
            continue;
        if (before && (row->largest > before->largest || (row->largest == before->largest && row <= before)))
            continue;
        if (!next || row->largest > next->largest)
            next = row;
    }
    return next;
}

static void print_varying(const tn_plan_section *s, FILE *out)
{
    enum { SHOWN = 5 };
    uint64_t count = 0;
    char words[96], a[32];
    for (size_t i = 0; i < s->row_count; i++)
        count += is_varying(&s->rows[i]) != 0;
    if (count)
        fprintf(out, "  %" PRIu64 " site%s ask%s for other sizes each time and hold%s what was seen%s:\n", count, count == 1 ? "" : "s", count == 1 ? "s" : "",
                count == 1 ? "s" : "", count > SHOWN ? ", the largest" : "");
    const tn_plan_row *row = NULL;
    for (uint64_t i = 0; i < count && i < SHOWN && (row = next_varying(s, row)); i++)
        fprintf(out, "    %016" PRIx64 " %-7s %s: up to %s MiB\n", row->key, tn_discipline_name(row->discipline), tn_plan_row_words(row, words, sizeof words),
                mib(row->largest, a));
}

/* Sites whose blocks were too many to be packed. */
static void print_apart(const tn_plan_section *s, FILE *out)
{
    uint64_t count = 0, bytes = 0;
    char a[32];
    for (size_t i = 0; i < s->row_count; i++) {
        if (strcmp(s->rows[i].reason, TN_REASON_TOO_MANY) != 0)
            continue;
        count++;
        bytes += s->rows[i].capacity;
    }
    if (count)
        fprintf(out, "  %" PRIu64 " site%s, %s MiB, share%s no addresses: too many blocks are alive at once to lay them all out together.\n"
                     "  A rule (packed, or T5b for pinned memory) has a site laid out all the same.\n",
                count, count == 1 ? "" : "s", mib(bytes, a), count == 1 ? "s" : "");
}

static void print_section(const tn_plan_section *s, FILE *out)
{
    uint64_t native = 0;
    for (size_t i = 0; i < s->row_count; i++)
        native += s->rows[i].discipline == TN_D_NATIVE;
    fprintf(out, "\n%s%s%s on device %" PRIu32 ": %zu sites, %" PRIu64 " of them left to the driver\n", s->exe, s->script ? " " : "",
            s->script ? s->script : "", s->device, s->row_count, native);
    print_tiers(s, out);
    print_sums(s, out);
    print_packed(s, out);
    if (s->sizing.known)
        fprintf(out, "  the largest pool is sized by memory query %" PRIu32 " of site %016" PRIx64 "\n", s->sizing.ordinal, s->sizing.key);
    else
        fprintf(out, "  no memory query sizes the largest pool\n");
    if (s->graph_execs)
        fprintf(out, "  graph execs at once: %" PRIu64 "\n", s->graph_execs);
    print_apart(s, out);
    print_varying(s, out);
}

void tn_plan_print(const tn_plan *plan, FILE *out)
{
    char a[32];
    fprintf(out, "Plan from %" PRIu64 " process%s, %" PRIu64 " events", plan->processes, plan->processes == 1 ? "" : "es", plan->events);
    if (plan->budget)
        fprintf(out, ", budget %s MiB", mib(plan->budget, a));
    fputc('\n', out);
    for (size_t i = 0; i < plan->section_count; i++)
        print_section(&plan->sections[i], out);
}

/* ---- verdicts ---- */

static void print_excess(const char *which, const tn_excess *e, const tn_plan *plan, const tn_trace *run, FILE *out)
{
    const tn_plan_row *row = &plan->sections[e->section].rows[e->row];
    char words[128];
    fprintf(out, "  %s excess: tier %s %s, site %016" PRIx64 " %s, event %" PRIu32 " of %s: %" PRIu64 " bytes short of %" PRIu64 " asked for, %s", which,
            tn_discipline_name(row->discipline), tn_family_name(row->family), row->key, tn_plan_row_words(row, words, sizeof words), e->at,
            run->processes[e->process].name, e->answer.short_by, e->bytes, tn_spill_text(e->answer.spill));
    if (e->answer.other != TN_TRACE_NONE)
        fprintf(out, ": %016" PRIx64 " %s", plan->sections[e->section].rows[e->answer.other].key,
                tn_plan_row_words(&plan->sections[e->section].rows[e->answer.other], words, sizeof words));
    fputc('\n', out);
}

void tn_verdict_print(const tn_verdict *v, const tn_plan *plan, const tn_trace *run, size_t top, FILE *out)
{
    char a[32], b[32], words[128];
    fprintf(out, "%" PRIu64 " requests replayed: %" PRIu64 " without room, %" PRIu64 " after a wait; sites matched by key %" PRIu64 ", by name %" PRIu64 "\n",
            v->hand_outs, v->excesses, v->waits, v->by_key, v->by_name);
    for (size_t i = 0; i < v->missing_count; i++)
        fprintf(out, "  the plan has no section for %s\n", v->missing[i]);
    if (v->excesses) {
        print_excess("first", &v->first, plan, run, out);
        print_excess("worst", &v->worst, plan, run, out);
    }
    size_t shown = 0, hidden = 0;
    for (size_t i = 0; i < v->row_count; i++) {
        const tn_plan_row *row = &plan->sections[v->rows[i].section].rows[v->rows[i].row];
        if (!v->rows[i].excesses && !v->rows[i].waits)
            continue; /* in another's way alone */
        if (shown == top) {
            hidden++;
            continue;
        }
        shown++;
        fprintf(out, "  %016" PRIx64 " %-7s %s: %" PRIu64 " without room (%" PRIu64 " bytes at worst), %" PRIu64 " waits\n", row->key,
                tn_discipline_name(row->discipline), tn_plan_row_words(row, words, sizeof words), v->rows[i].excesses, v->rows[i].worst, v->rows[i].waits);
    }
    if (hidden)
        fprintf(out, "  and %zu more sites\n", hidden);
    if (v->plan_only)
        fprintf(out, "  %" PRIu64 " sites of the plan are not in this run\n", v->plan_only);
    if (v->unplanned) {
        fprintf(out, "  %" PRIu64 " sites of the run are not in the plan and stay with the driver, %s MiB at most:\n", v->unplanned, mib(v->unplanned_bytes, a));
        for (size_t i = 0; i < v->unplanned && i < top; i++)
            fprintf(out, "    %016" PRIx64 " %s MiB in %" PRIu64 " blocks\n", v->unplanned_sites[i].key, mib(v->unplanned_sites[i].bytes, a),
                    v->unplanned_sites[i].blocks);
    }
    if (v->native_bytes > v->native_planned)
        fprintf(out, "  left to the driver: %s MiB, and %s MiB were planned for\n", mib(v->native_bytes, a), mib(v->native_planned, b));
    if (v->incomplete)
        fputs("  Events of the run were dropped or cannot be read: this is of what was recorded.\n", out);
    static const char *const sentences[] = {[TN_PLAN_HOLDS] = "The plan holds.", [TN_PLAN_FALLS_SHORT] = "The plan does not hold.",
                                            [TN_PLAN_UNCERTAIN] = "It cannot be said whether the plan holds."};
    fprintf(out, "%s\n", sentences[tn_verdict_judge(v)]);
}

size_t tn_shadow_print(const tn_verdict *v, const tn_plan *plan, FILE *out)
{
    char words[96];
    size_t count = 0;
    fprintf(out, "%-16s %-7s %21s %31s\n", "site", "tier", "blocks at once", "largest request");
    fprintf(out, "%-16s %-7s %10s %10s %15s %15s\n", "", "", "planned", "seen", "planned", "seen");
    for (size_t i = 0; i < v->seen_count; i++) {
        const struct tn_seen *x = &v->seen[i];
        const tn_plan_row *row = &plan->sections[x->section].rows[x->row];
        if (x->blocks == row->blocks && x->largest == row->largest)
            continue;
        count++;
        fprintf(out, "%016" PRIx64 " %-7s %10" PRIu64 " %10" PRIu64 " %15" PRIu64 " %15" PRIu64 "  %s\n", row->key, tn_discipline_name(row->discipline), row->blocks,
                x->blocks, row->largest, x->largest, tn_plan_row_words(row, words, sizeof words));
    }
    fprintf(out, "%zu of %zu sites differ from the plan\n", count, v->seen_count);
    return count;
}
