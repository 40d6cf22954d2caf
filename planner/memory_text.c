/* The table of a plan. Figures are rounded as running sums, so that what is shown adds up. */
#include "planner/memory_text.h"

#include <inttypes.h>

enum { MIB_SHIFT = 20, LEAST_WIDTH = 36, FIGURE = 32 };

typedef struct table {
    FILE *out;
    bool tenths; /* a figure is no whole MiB: all are shown in tenths */
    int width;   /* of the names */
} table;

/* Half up, in MiB or in tenths of MiB; a figure below 2^63 has room for the ten. */
static uint64_t rounded(const table *t, uint64_t bytes)
{
    uint64_t whole = bytes >> MIB_SHIFT, rest = bytes & ((1u << MIB_SHIFT) - 1), unit = t->tenths ? 10 : 1;
    return whole * unit + ((rest * unit + (1u << (MIB_SHIFT - 1))) >> MIB_SHIFT);
}

static const char *figure(const table *t, uint64_t units, char out[FIGURE])
{
    if (t->tenths)
        snprintf(out, FIGURE, "%" PRIu64 ".%" PRIu64, units / 10, units % 10);
    else
        snprintf(out, FIGURE, "%" PRIu64, units);
    return out;
}

/* "273 MiB", or "7 bytes" of what is too small to show. */
static const char *amount(const table *t, uint64_t bytes, char out[FIGURE])
{
    uint64_t units = rounded(t, bytes);
    char text[FIGURE];
    if (units == 0 && bytes > 0)
        snprintf(out, FIGURE, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(out, FIGURE, "%.20s MiB", figure(t, units, text));
    return out;
}

/* UTF-8's characters; names with wider or combining ones stand out by a little. */
static int columns(const char *name)
{
    int n = 0;
    for (; *name; name++)
        n += (*name & 0xc0) != 0x80;
    return n;
}

/* printf pads by bytes. */
static void write_name(const table *t, const char *name) { fprintf(t->out, "    %s%*s", name, t->width - columns(name), ""); }

static bool is_whole(uint64_t bytes) { return (bytes & ((1u << MIB_SHIFT) - 1)) == 0; }

static size_t shown_levers(const tn_memory_plan *p)
{
    return p->lever_count < TN_MEMORY_SHOWN_LEVERS ? p->lever_count : TN_MEMORY_SHOWN_LEVERS;
}

static table layout(const tn_memory_plan *p, FILE *out)
{
    table t = {.out = out, .width = LEAST_WIDTH};
    bool whole = p->budget == TN_MEMORY_NO_BUDGET || is_whole(p->budget);
    for (size_t i = 0; i < p->line_count; i++) {
        int length = columns(p->lines[i].name);
        t.width = length > t.width ? length : t.width;
        whole &= is_whole(p->lines[i].bytes);
    }
    for (size_t i = 0; i < shown_levers(p); i++) {
        int length = columns(p->levers[i].what);
        t.width = length > t.width ? length : t.width;
        whole &= is_whole(p->levers[i].frees);
    }
    t.tenths = !whole;
    return t;
}

static void write_lines(const table *t, const tn_memory_plan *p)
{
    char text[FIGURE];
    fprintf(t->out, "\n  %-*s %12s\n", t->width + 2, p->result == TN_MEMORY_FITS ? "planned" : "requested", "MiB");
    uint64_t sum = 0;
    for (size_t i = 0; i < p->line_count; i++) {
        uint64_t shown = rounded(t, sum + p->lines[i].bytes) - rounded(t, sum);
        sum += p->lines[i].bytes;
        write_name(t, p->lines[i].name);
        fprintf(t->out, " %12s\n", figure(t, shown, text));
    }
    fprintf(t->out, "    %-*s %12s\n", t->width, "", "-------");
    fprintf(t->out, "    %-*s %12s", t->width, "total", figure(t, rounded(t, p->total), text));
    if (p->over)
        fprintf(t->out, "   over by %s", amount(t, p->over, text));
    else if (p->budget != TN_MEMORY_NO_BUDGET)
        fprintf(t->out, "   %s left", amount(t, p->left, text));
    fputc('\n', t->out);
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

/* What the pool holds and for whom. */
static void write_pool(const table *t, const tn_memory_plan *p)
{
    const tn_memory_kv *kv = &p->kv;
    if (!kv->block_bytes)
        return;
    fprintf(t->out, "\n  the KV pool has %" PRIu64 " block%s of %" PRIu64 " tokens, %" PRIu64 " bytes each: ", kv->blocks, plural(kv->blocks),
            kv->block_tokens, kv->block_bytes);
    if (kv->blocks == p->wanted_blocks) {
        fprintf(t->out, "all that %" PRIu64 " sequence%s of %" PRIu64 " tokens can reach\n", kv->sequences, plural(kv->sequences),
                kv->sequence_tokens);
        return;
    }
    fprintf(t->out, "%" PRIu64 " of the %" PRIu64 " sequence%s fit at full length\n", kv->blocks / kv->sequence_blocks, kv->sequences,
            plural(kv->sequences));
}

static void write_missing_pool(const table *t, const tn_memory_plan *p)
{
    const tn_memory_kv *kv = &p->kv;
    /* The product is what the pool's bytes hold, of which a token has one at least where this is called. */
    fprintf(t->out, "The KV pool would have room for %" PRIu64 " tokens (%" PRIu64 " block%s of %" PRIu64 "), and %" PRIu64 " sequence%s of %" PRIu64
            " tokens need%s %" PRIu64 " block%s.\n",
            p->room_blocks * kv->block_tokens, p->room_blocks, plural(p->room_blocks), kv->block_tokens, kv->full_sequences, plural(kv->full_sequences),
            kv->sequence_tokens, kv->full_sequences == 1 ? "s" : "", tn_memory_floor_blocks(kv),
            plural(tn_memory_floor_blocks(kv)));
}

static void write_levers(const table *t, const tn_memory_plan *p)
{
    static const char *const heads[] = {"no lever frees anything", "the one lever", "the two largest levers", "the three largest levers"};
    char text[FIGURE];
    fprintf(t->out, "\n  %s\n", heads[shown_levers(p)]);
    for (size_t i = 0; i < shown_levers(p); i++) {
        const tn_memory_lever *l = &p->levers[i];
        write_name(t, l->what);
        fprintf(t->out, " frees %s", amount(t, l->frees, text));
        if (l->over)
            fprintf(t->out, ", %s short", amount(t, l->over, text));
        fputc('\n', t->out);
    }
}

static void write_what_fits(const table *t, const tn_memory_plan *p)
{
    const char *before = "\n  it would fit with ";
    if (p->fitting_seq_len) {
        fprintf(t->out, "%slimits.max_seq_len %" PRIu64, before, p->fitting_seq_len);
        before = " or ";
    }
    if (p->fitting_batch) {
        fprintf(t->out, "%slimits.max_batch %" PRIu64, before, p->fitting_batch);
        before = " or ";
    }
    if (p->single_fits && p->kv.full_sequences > 1) {
        fprintf(t->out, "%slimits.full_sequences 1", before);
        before = " or ";
    }
    if (*before != '\n')
        fputc('\n', t->out);
}

int tn_memory_text(const tn_memory_plan *p, FILE *out)
{
    table t = layout(p, out);
    char text[FIGURE];
    switch (p->result) {
    case TN_MEMORY_TOO_LARGE:
        fprintf(out, "Cannot plan this configuration: %s is more than 2^63 - 1 bytes.\n", p->where);
        return ferror(out) ? -1 : 0;
    case TN_MEMORY_FITS:
        if (p->budget == TN_MEMORY_NO_BUDGET)
            fprintf(out, "This configuration needs %s; no budget was given.\n", amount(&t, p->total, text));
        else
            fprintf(out, "This configuration fits in the %s budget.\n", amount(&t, p->budget, text));
        break;
    default:
        fprintf(out, "Cannot fit this configuration in the %s budget.\n", amount(&t, p->budget, text));
        if (p->result == TN_MEMORY_KV_FLOOR)
            write_missing_pool(&t, p);
        break;
    }
    write_lines(&t, p);
    if (p->result == TN_MEMORY_FITS) {
        write_pool(&t, p);
    } else {
        write_levers(&t, p);
        write_what_fits(&t, p);
    }
    return ferror(out) ? -1 : 0;
}
