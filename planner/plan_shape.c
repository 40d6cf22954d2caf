/* The tables, innermost first. */
#include "planner/plan_shape.h"

#include "ledger/journal_format.h"
#include "planner/plan.h"

#define FIELD(type_, struct_, member, name_, ...) {.name = name_, .type = TN_SHAPE_##type_, .offset = offsetof(struct_, member), __VA_ARGS__}
#define ARRAY_OF(type_, struct_, member, counter, name_, ...) \
    {.name = name_, .type = TN_SHAPE_##type_, .offset = offsetof(struct_, member), .count_offset = offsetof(struct_, counter), __VA_ARGS__}
#define SHAPE(fields_, struct_, line) {fields_, sizeof(fields_) / sizeof((fields_)[0]), sizeof(struct_), line}
#define OPTIONAL .flags = TN_SHAPE_OPTIONAL

_Static_assert(sizeof(tn_plan_section) <= TN_SHAPE_BYTES && sizeof(tn_plan_row) <= TN_SHAPE_BYTES && sizeof(tn_plan_tier) <= TN_SHAPE_BYTES,
               "a reader has room for one element");

const char *const tn_shape_phases[TN_SHAPE_PHASES] = {[TN_PHASE_LOADING] = "loading", [TN_PHASE_PLANNING] = "planning", [TN_PHASE_SERVING] = "serving"};

static const tn_shape_field frame_fields[] = {
    FIELD(TEXT, tn_plan_frame, function, "function", OPTIONAL),
    FIELD(U64, tn_plan_frame, delta, "delta", OPTIONAL),
    FIELD(TEXT, tn_plan_frame, file, "file", OPTIONAL),
    FIELD(U32, tn_plan_frame, line, "line", OPTIONAL),
    FIELD(TEXT, tn_plan_frame, module, "module", OPTIONAL),
    FIELD(U64, tn_plan_frame, offset, "offset", OPTIONAL),
    FIELD(TEXT, tn_plan_frame, build_id, "build_id", OPTIONAL),
    FIELD(FLAG, tn_plan_frame, inlined, "inlined", OPTIONAL, .bytes = 1),
};
static const tn_shape frame_shape = SHAPE(frame_fields, tn_plan_frame, 1);

static const tn_shape_field class_fields[] = {
    FIELD(U64, tn_plan_class, bytes, "bytes"),
    FIELD(U64, tn_plan_class, alignment, "alignment"),
    ARRAY_OF(U64S, tn_plan_class, offsets, count, "offsets"),
};
static const tn_shape class_shape = SHAPE(class_fields, tn_plan_class, 1);

static const tn_shape_field room_fields[] = {
    FIELD(U64, tn_room, size, "size", OPTIONAL),
    FIELD(U64, tn_room, blocks, "blocks", OPTIONAL),
    FIELD(U64, tn_room, bytes, "bytes", OPTIONAL),
    FIELD(FLAG, tn_room, apart, "apart", OPTIONAL, .bytes = 1),
};
static const tn_shape room_shape = SHAPE(room_fields, tn_room, 1);

static const tn_shape_field row_fields[] = {
    FIELD(KEY, tn_plan_row, key, "key"),
    FIELD(KEY, tn_plan_row, python, "python_key", OPTIONAL),
    FIELD(KEY, tn_plan_row, coarse, "coarse_key", OPTIONAL),
    FIELD(DISCIPLINE, tn_plan_row, discipline, "discipline"),
    FIELD(FAMILY, tn_plan_row, family, "family"),
    FIELD(U32, tn_plan_row, detail, "flags", OPTIONAL),
    FIELD(U64, tn_plan_row, capacity, "capacity"),
    FIELD(U64, tn_plan_row, blocks, "blocks"),
    FIELD(U64, tn_plan_row, largest, "largest"),
    FIELD(U64, tn_plan_row, alignment, "alignment", OPTIONAL),
    FIELD(U64, tn_plan_row, headroom, "headroom", OPTIONAL),
    FIELD(OBJECT, tn_plan_row, room, "room", .flags = TN_SHAPE_OPTIONAL | TN_SHAPE_IF_KNOWN, .shape = &room_shape),
    FIELD(FLAG, tn_plan_row, varies, "varies", OPTIONAL, .bytes = 1),
    FIELD(FLAG, tn_plan_row, held, "held", OPTIONAL, .bytes = 1),
    FIELD(TEXT, tn_plan_row, reason, "reason"),
    FIELD(TEXT, tn_plan_row, rule, "rule", OPTIONAL),
    FIELD(DISCIPLINE, tn_plan_row, runner_up, "runner_up"),
    FIELD(U64, tn_plan_row, runner_capacity, "runner_up_capacity"),
    ARRAY_OF(ARRAY, tn_plan_row, classes, class_count, "slots", OPTIONAL, .shape = &class_shape),
    ARRAY_OF(TEXTS, tn_plan_row, python_frames, python_frame_count, "python", .flags = TN_SHAPE_OPTIONAL | TN_SHAPE_NAMES),
    ARRAY_OF(ARRAY, tn_plan_row, frames, frame_count, "frames", .flags = TN_SHAPE_OPTIONAL | TN_SHAPE_NAMES, .shape = &frame_shape),
};
static const tn_shape row_shape = SHAPE(row_fields, tn_plan_row, 0);

static const tn_shape_field region_fields[] = {
    FIELD(KEY, tn_plan_region, key, "first_key"),
    FIELD(KEY, tn_plan_region, python, "first_python_key", OPTIONAL),
    FIELD(U64, tn_plan_region, first_bytes, "first_bytes"),
    FIELD(U64, tn_plan_region, capacity, "capacity"),
    FIELD(U64, tn_plan_region, count, "requests"),
    FIELD(U32, tn_plan_region, times, "times"),
};
static const tn_shape region_shape = SHAPE(region_fields, tn_plan_region, 1);

static const tn_shape_field tier_fields[] = {
    FIELD(DISCIPLINE, tn_plan_tier, discipline, "discipline"),
    FIELD(FAMILY, tn_plan_tier, family, "family"),
    FIELD(U32, tn_plan_tier, detail, "flags", OPTIONAL),
    FIELD(U64, tn_plan_tier, block, "block", OPTIONAL),
    FIELD(U64, tn_plan_tier, capacity, "capacity"),
    FIELD(U64, tn_plan_tier, live_peak, "high_water"),
    FIELD(U64, tn_plan_tier, live_exact, "high_water_512", OPTIONAL),
    FIELD(U64, tn_plan_tier, sites, "sites"),
    FIELD(U64, tn_plan_tier, streams, "streams", OPTIONAL),
    FIELD(U64, tn_plan_tier, slots, "slots", OPTIONAL),
    FIELD(FINENESS, tn_plan_tier, classes_an_octave, "classes_an_octave", OPTIONAL),
    FIELD(U64, tn_plan_tier, lower_bound, "lower_bound", OPTIONAL),
    FIELD(U64, tn_plan_tier, with_waits, "capacity_with_waits", OPTIONAL),
    FIELD(U64, tn_plan_tier, hand_outs, "hand_outs", OPTIONAL),
    FIELD(U64, tn_plan_tier, shared, "shared_hand_outs", OPTIONAL),
    FIELD(U64, tn_plan_tier, nearest, "nearest_reuse", OPTIONAL),
};
static const tn_shape tier_shape = SHAPE(tier_fields, tn_plan_tier, 0);

static const tn_shape_field phase_fields[] = {
    FIELD(PHASE, tn_plan_phase, phase, "phase"),
    FIELD(U64, tn_plan_phase, device_bytes, "device_bytes"),
    FIELD(U64, tn_plan_phase, native_bytes, "native_bytes"),
    FIELD(U64, tn_plan_phase, pinned_bytes, "pinned_bytes"),
};
static const tn_shape phase_shape = SHAPE(phase_fields, tn_plan_phase, 1);

static const tn_shape_field charge_fields[] = {
    FIELD(TEXT, tn_plan_charge, name, "name"),
    FIELD(U64, tn_plan_charge, bytes, "bytes"),
    FIELD(TEXT, tn_plan_charge, source, "source", OPTIONAL),
    FIELD(TEXT, tn_plan_charge, date, "date", OPTIONAL),
};
static const tn_shape charge_shape = SHAPE(charge_fields, tn_plan_charge, 1);

static const tn_shape_field sizing_fields[] = {
    FIELD(KEY, tn_plan_sizing, key, "key"),
    FIELD(U32, tn_plan_sizing, ordinal, "ordinal"),
    FIELD(U64, tn_plan_sizing, free_bytes, "free_bytes"),
    ARRAY_OF(KEYS, tn_plan_sizing, sized, sized_count, "sizes"),
};
static const tn_shape sizing_shape = SHAPE(sizing_fields, tn_plan_sizing, 0);

static const tn_shape_field section_fields[] = {
    FIELD(TEXT, tn_plan_section, exe, "executable"),
    FIELD(TEXT, tn_plan_section, exe_build_id, "build_id"),
    FIELD(TEXT, tn_plan_section, script, "script", OPTIONAL),
    FIELD(U32, tn_plan_section, device, "device"),
    FIELD(U64, tn_plan_section, instances, "contexts"),
    FIELD(U64, tn_plan_section, total, "total_bytes"),
    FIELD(U64, tn_plan_section, native_bytes, "native_bytes"),
    FIELD(U64, tn_plan_section, device_live_peak, "device_live_peak"),
    FIELD(U64, tn_plan_section, graph_execs, "graph_execs"),
    FIELD(OBJECT, tn_plan_section, sizing, "sizing_query", .flags = TN_SHAPE_OPTIONAL | TN_SHAPE_IF_KNOWN, .shape = &sizing_shape),
    ARRAY_OF(ARRAY, tn_plan_section, charges, charge_count, "charges", .shape = &charge_shape),
    ARRAY_OF(ARRAY, tn_plan_section, phases, phase_count, "phases", .shape = &phase_shape),
    ARRAY_OF(ARRAY, tn_plan_section, tiers, tier_count, "tiers", .shape = &tier_shape),
    ARRAY_OF(ARRAY, tn_plan_section, regions, region_count, "regions", .shape = &region_shape),
    ARRAY_OF(ARRAY, tn_plan_section, rows, row_count, "sites", .shape = &row_shape),
};
static const tn_shape section_shape = SHAPE(section_fields, tn_plan_section, 0);

static const tn_shape_field plan_fields[] = {
    FIELD(U64, tn_plan, budget, "budget", OPTIONAL),
    FIELD(U32, tn_plan, headroom, "headroom_percent", OPTIONAL),
    FIELD(U64, tn_plan, gap, "gap_bytes", OPTIONAL),
    FIELD(U64, tn_plan, processes, "processes"),
    FIELD(U64, tn_plan, events, "events"),
    ARRAY_OF(ARRAY, tn_plan, sections, section_count, "sections", .shape = &section_shape),
};
const tn_shape tn_plan_shape = SHAPE(plan_fields, tn_plan, 0);
