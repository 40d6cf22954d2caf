/* Sums in the order of taking; the KV pool gets the rest, at most what its sequences can reach, at least what must fit. */
#include "planner/memory.h"

#include <stdio.h>
#include <string.h>

/* Figures stay in a signed 64-bit integer, the widest of JSON's readers. */
static bool add(uint64_t *sum, uint64_t bytes) { return !__builtin_add_overflow(*sum, bytes, sum) && *sum <= INT64_MAX; }
static bool multiply(uint64_t a, uint64_t b, uint64_t *product) { return !__builtin_mul_overflow(a, b, product) && *product <= INT64_MAX; }

/* The next multiple of `step`, which need be no power of two. */
static bool round_up(uint64_t bytes, uint64_t step, uint64_t *out)
{
    uint64_t rest = step > 1 ? bytes % step : 0;
    *out = bytes;
    return rest == 0 || add(out, step - rest);
}

static void too_large(tn_memory_plan *plan, const char *where)
{
    char kept[TN_MEMORY_NAME]; /* `where` may lie in the plan */
    snprintf(kept, sizeof(kept), "%s", where);
    memset(plan, 0, sizeof(*plan));
    plan->result = TN_MEMORY_TOO_LARGE;
    memcpy(plan->where, kept, sizeof(kept));
}

uint64_t tn_memory_floor_blocks(const tn_memory_kv *kv)
{
    uint64_t blocks = 0;
    return multiply(kv->full_sequences, kv->sequence_blocks, &blocks) ? blocks : UINT64_MAX;
}

bool tn_memory_add(tn_memory_input *input, tn_memory_part part, const char *name, uint64_t bytes)
{
    if (bytes == 0)
        return true;
    if (input->line_count == TN_MEMORY_LINES)
        return false;
    tn_memory_line *line = &input->lines[input->line_count++];
    memset(line, 0, sizeof(*line));
    snprintf(line->name, sizeof(line->name), "%s", name);
    line->part = part;
    line->bytes = bytes;
    return true;
}

static void add_plan_line(tn_memory_plan *plan, tn_memory_part part, const char *name, uint64_t bytes)
{
    if (bytes == 0)
        return;
    tn_memory_line *line = &plan->lines[plan->line_count++];
    snprintf(line->name, sizeof(line->name), "%s", name);
    line->part = part;
    line->bytes = bytes;
}

/* Copies the lines in the order of parts and sums them, each tier with what rounds it up. NULL, or the line at which it overflowed. */
static const char *sum_lines(const tn_memory_input *input, tn_memory_plan *plan, uint64_t *rounding)
{
    for (int part = 0; part < TN_PART_ROUNDING; part++) {
        uint64_t tier = 0, rounded;
        for (size_t i = 0; i < input->line_count; i++) {
            const tn_memory_line *line = &input->lines[i];
            if ((int)line->part != part)
                continue;
            if (!add(&tier, line->bytes))
                return line->name;
            plan->lines[plan->line_count++] = *line;
        }
        /* Charges and what the driver serves are known by what they cost. */
        if (!round_up(tier, part <= TN_PART_NATIVE ? 1 : input->granularity, &rounded) || !add(rounding, rounded - tier) ||
            !add(&plan->total, rounded))
            return "the sum of all lines";
    }
    return NULL;
}

/* How many blocks a pool of at most `bytes` has, which is itself taken in whole steps. */
static uint64_t blocks_in(uint64_t bytes, const tn_memory_input *input)
{
    if (input->granularity > 1)
        bytes -= bytes % input->granularity;
    return bytes / input->kv.block_bytes;
}

/* The pool's line, and what rounds it. */
static bool take_pool(const tn_memory_input *input, uint64_t blocks, tn_memory_plan *plan, uint64_t rounding)
{
    const tn_memory_kv *kv = &input->kv;
    uint64_t bytes, rounded;
    if (!multiply(blocks, kv->block_bytes, &bytes) || !round_up(bytes, input->granularity, &rounded) || !add(&plan->total, rounded) ||
        !add(&rounding, rounded - bytes))
        return false;
    add_plan_line(plan, TN_PART_ROUNDING, "rounding to the device's granularity", rounding);
    char name[TN_MEMORY_NAME];
    unsigned long long granted = blocks, tokens = kv->sequence_tokens, most = kv->sequences;
    if (blocks == plan->wanted_blocks)
        snprintf(name, sizeof(name), "KV pool (batch %llu x %llu tok)", most, tokens);
    else if (plan->result != TN_MEMORY_FITS)
        snprintf(name, sizeof(name), "KV pool (%llu of batch %llu x %llu tok)", (unsigned long long)kv->full_sequences, most, tokens);
    else
        snprintf(name, sizeof(name), "KV pool (%llu of %llu blocks)", granted, (unsigned long long)plan->wanted_blocks);
    plan->kv.blocks = blocks;
    add_plan_line(plan, TN_PART_KV, name, bytes);
    return true;
}

void tn_memory_fit(const tn_memory_input *input, tn_memory_plan *out)
{
    memset(out, 0, sizeof(*out));
    out->budget = input->budget;
    uint64_t rounding = 0, wanted_bytes = 0, blocks = 0;
    const char *where = sum_lines(input, out, &rounding);
    if (!where && input->budget > INT64_MAX && input->budget != TN_MEMORY_NO_BUDGET)
        where = "the budget";
    if (where) {
        too_large(out, where);
        return;
    }

    out->kv = input->kv;
    if (input->kv.block_bytes == 0) {
        memset(&out->kv, 0, sizeof(out->kv));
    } else if (!multiply(input->kv.sequences, input->kv.sequence_blocks, &out->wanted_blocks) ||
               !multiply(out->wanted_blocks, input->kv.block_bytes, &wanted_bytes) ||
               !round_up(wanted_bytes, input->granularity, &wanted_bytes)) {
        too_large(out, "KV pool");
        return;
    }

    uint64_t fixed = out->total;
    bool limited = input->budget != TN_MEMORY_NO_BUDGET;
    blocks = out->room_blocks = out->wanted_blocks;
    if (limited && input->kv.block_bytes)
        out->room_blocks = fixed > input->budget ? 0 : blocks_in(input->budget - fixed, input);
    if (limited && fixed > input->budget) {
        out->result = TN_MEMORY_OVER;
        blocks = tn_memory_floor_blocks(&out->kv);
    } else if (limited && wanted_bytes > input->budget - fixed) {
        blocks = out->room_blocks;
        if (blocks < tn_memory_floor_blocks(&out->kv)) {
            out->result = TN_MEMORY_KV_FLOOR;
            blocks = tn_memory_floor_blocks(&out->kv);
        }
    }
    if (out->kv.block_bytes == 0)
        add_plan_line(out, TN_PART_ROUNDING, "rounding to the device's granularity", rounding);
    else if (!take_pool(input, blocks, out, rounding)) {
        too_large(out, "the sum of all lines");
        return;
    }
    if (limited) {
        out->over = out->total > input->budget ? out->total - input->budget : 0;
        out->left = out->total < input->budget ? input->budget - out->total : 0;
    }
}
