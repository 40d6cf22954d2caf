/* A plan as JSON. jansson keeps the order in which keys are set. */
#include "planner/memory_text.h"

const char *tn_memory_part_name(tn_memory_part part)
{
    static const char *const names[TN_PARTS] = {"charge", "native", "t2", "t1", "t3", "t4", "rounding", "kv"};
    return (unsigned)part < TN_PARTS ? names[part] : "unknown";
}

static json_t *integer(uint64_t value) { return json_integer((json_int_t)value); }

static json_t *lines(const tn_memory_plan *p)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < p->line_count; i++)
        if (json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "part", tn_memory_part_name(p->lines[i].part), "name", p->lines[i].name,
                                                   "bytes", integer(p->lines[i].bytes))) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *kv(const tn_memory_plan *p)
{
    if (!p->kv.block_bytes)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "blocks", integer(p->kv.blocks), "wanted_blocks",
                     integer(p->wanted_blocks), "room_blocks", integer(p->room_blocks), "floor_blocks",
                     integer(tn_memory_floor_blocks(&p->kv)), "block_bytes", integer(p->kv.block_bytes), "block_tokens",
                     integer(p->kv.block_tokens), "sequence_blocks", integer(p->kv.sequence_blocks), "sequence_tokens",
                     integer(p->kv.sequence_tokens), "sequences", integer(p->kv.sequences), "full_sequences", integer(p->kv.full_sequences));
}

static json_t *levers(const tn_memory_plan *p)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < p->lever_count; i++)
        if (json_array_append_new(array, json_pack("{s:s, s:o, s:o}", "what", p->levers[i].what, "frees_bytes", integer(p->levers[i].frees),
                                                   "over_bytes", integer(p->levers[i].over))) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

json_t *tn_memory_json(const tn_memory_plan *p)
{
    static const char *const results[] = {"fits", "over_budget", "kv_below_floor", "too_large"};
    if (p->result == TN_MEMORY_TOO_LARGE)
        return json_pack("{s:s, s:s}", "result", results[p->result], "where", p->where);
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:b}}", "result", results[p->result], "budget_bytes",
                     p->budget == TN_MEMORY_NO_BUDGET ? json_null() : integer(p->budget), "total_bytes", integer(p->total), "over_bytes",
                     integer(p->over), "left_bytes", integer(p->left), "lines", lines(p), "kv", kv(p), "levers", levers(p), "would_fit",
                     "max_seq_len", integer(p->fitting_seq_len), "max_batch", integer(p->fitting_batch), "full_sequences_1",
                     (int)p->single_fits);
}
