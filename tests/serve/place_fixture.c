#include "tests/serve/place_fixture.h"

#include <stdio.h>
#include <string.h>

#include "planner/plan_check.h"

tn_plan_section section;
tn_host *device_host, *async_host, *pinned_hosts[TN_PLACE_PINNED_SETS];
tn_place *place;
tn_work work;

/* ---- the plan */

static tn_plan_row rows[256];
static tn_plan_class classes[1024];
static uint64_t offsets[65536];
static tn_plan_tier tiers[64];
static tn_plan_region regions[256];
static size_t class_count, offset_count;

uint32_t plan_row(tn_discipline discipline, tn_family family, uint64_t largest, uint64_t capacity)
{
    uint32_t i = (uint32_t)section.row_count++;
    ck_assert_uint_lt(i, sizeof rows / sizeof *rows);
    rows[i] = (tn_plan_row){.key = KEYS + i, .discipline = discipline, .family = family, .largest = largest, .capacity = capacity};
    if (discipline == TN_D_T3)
        rows[i].blocks = capacity / tn_round_up(largest, tn_native_alignment(family, largest));
    return i;
}

uint32_t plan_pinned_row(uint32_t flags, uint64_t largest)
{
    uint32_t i = plan_row(TN_D_T5B, TN_FAMILY_PINNED, largest, 0);
    rows[i].detail = flags;
    return i;
}

void plan_class(uint64_t bytes, size_t count, const uint64_t *at)
{
    tn_plan_row *row = &rows[section.row_count - 1];
    ck_assert_uint_lt(class_count, sizeof classes / sizeof *classes);
    ck_assert_uint_le(offset_count + count, sizeof offsets / sizeof *offsets);
    if (row->class_count++ == 0)
        row->classes = &classes[class_count];
    classes[class_count++] = (tn_plan_class){.bytes = bytes, .alignment = tn_native_alignment(row->family, bytes), .offsets = &offsets[offset_count], .count = count};
    for (size_t i = 0; i < count; i++)
        offsets[offset_count++] = at[i];
}

void plan_tier(tn_discipline discipline, tn_family family, uint32_t detail, uint64_t capacity, uint64_t streams)
{
    ck_assert_uint_lt(section.tier_count, sizeof tiers / sizeof *tiers);
    tiers[section.tier_count++] =
        (tn_plan_tier){.discipline = discipline, .family = family, .detail = detail, .capacity = capacity, .streams = streams};
}

void plan_region(uint32_t row, uint64_t first_bytes, uint64_t capacity, uint64_t count, uint32_t times)
{
    ck_assert_uint_lt(section.region_count, sizeof regions / sizeof *regions);
    regions[section.region_count++] =
        (tn_plan_region){.key = KEYS + row, .first_bytes = first_bytes, .capacity = capacity, .count = count, .times = times};
}

void plan_done(void)
{
    char message[TN_PLAN_CHECK_MESSAGE];
    tn_metadata plain = {.resize = metadata.resize};
    for (unsigned f = 0; f < TN_FAMILY_HANDLE; f++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < section.row_count; i++)
            if (rows[i].discipline == TN_D_T3 && rows[i].family == f)
                sum += rows[i].capacity;
        if (sum)
            plan_tier(TN_D_T3, (tn_family)f, 0, sum, 0);
    }
    for (size_t i = 0; i < section.tier_count; i++)
        if (tiers[i].family != TN_FAMILY_PINNED)
            section.total += tiers[i].capacity * (tiers[i].discipline == TN_D_T4 ? tiers[i].streams : 1);
    tn_plan plan = {.sections = &section, .section_count = 1};
    ck_assert_msg(tn_plan_check_in(&plan, &plain, message) == TN_OK, "%s", message);
}

/* ---- memory */

static size_t calls, failing, held;

static void *resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    if (new_bytes == 0) {
        held -= old_bytes;
        free(block);
        return NULL;
    }
    if (++calls == failing)
        return NULL;
    void *moved = realloc(block, new_bytes);
    /* What is new must be seen to be written before it is read. */
    if (new_bytes > old_bytes)
        memset((char *)moved + old_bytes, 0xA5, new_bytes - old_bytes);
    held += new_bytes - old_bytes;
    return moved;
}

tn_metadata metadata = {.resize = resize};

void metadata_fail(size_t nth)
{
    failing = nth ? calls + nth : 0;
}

size_t metadata_calls(void)
{
    return calls;
}

size_t metadata_held(void)
{
    return held;
}

/* ---- the device */

static tn_work inner;
static size_t waits;
static bool waits_fail;

static bool done(void *self, tn_work_mark mark)
{
    (void)self;
    return inner.table->done(inner.self, mark);
}

static bool ordered(void *self, tn_work_mark mark, uint64_t queue)
{
    (void)self;
    return inner.table->ordered(inner.self, mark, queue);
}

static tn_work_mark all(void *self)
{
    (void)self;
    return inner.table->all(inner.self);
}

static uint64_t waited_for;

/* Queues of one context: a wait for one is a wait for all of them. */
static tn_mem_error wait_for(void *self, tn_work_mark mark)
{
    (void)self;
    __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&waited_for, mark.queue, __ATOMIC_RELAXED);
    return waits_fail ? TN_MEM_E_DRIVER : inner.table->wait(inner.self, inner.table->all(inner.self));
}

uint64_t device_waited_for(void)
{
    return waited_for;
}

size_t device_waits(void)
{
    return waits;
}

void device_let_waits_fail(bool fail)
{
    waits_fail = fail;
}

void device_finish_up_to(tn_work_mark mark)
{
    if (inner.table->wait(inner.self, mark) != TN_MEM_OK)
        ck_abort_msg("the device of the tests does not finish");
}

/* ---- the place */

static uint8_t phase_now;

uint8_t *phase(void)
{
    return &phase_now;
}

void fixture_begin(void)
{
    static const tn_work_table table = {.done = done, .ordered = ordered, .all = all, .wait = wait_for};
    memset(&section, 0, sizeof section);
    section.rows = rows;
    section.tiers = tiers;
    section.regions = regions;
    class_count = offset_count = calls = failing = held = waits = 0;
    waits_fail = false;
    phase_now = 0;
    inner = device_begin();
    work = (tn_work){.table = &table};
    device_host = fixture_host(&(tn_host_options){0});
    async_host = fixture_host(&(tn_host_options){0});
    for (size_t i = 0; i < TN_PLACE_PINNED_SETS; i++)
        pinned_hosts[i] = fixture_host(&(tn_host_options){0});
    place = NULL;
}

tn_place_options place_options(void)
{
    tn_place_options o = {.section = &section, .device = tn_host_backend(device_host), .async = tn_host_backend(async_host), .work = work,
                          .work_everywhere = work, .metadata = &metadata};
    for (size_t i = 0; i < TN_PLACE_PINNED_SETS; i++)
        o.pinned[i] = tn_host_backend(pinned_hosts[i]);
    return o;
}

void place_begin(void)
{
    tn_place_options o = place_options();
    plan_done();
    expect_ok(tn_place_create(&o, &place, NULL));
}

void fixture_end(void)
{
    tn_place_destroy(&place, 0);
    ck_assert_ptr_null(place);
    ck_assert_uint_eq(metadata_held(), 0);
    fixture_finish(device_host);
    fixture_finish(async_host);
    for (size_t i = 0; i < TN_PLACE_PINNED_SETS; i++)
        fixture_finish(pinned_hosts[i]);
}

tn_place_answer ask(uint32_t row, size_t bytes, uint32_t stream, int may_wait)
{
    tn_place_answer a;
    memset(&a, 0xA5, sizeof a);
    tn_place_take(place, row, bytes, stream, phase_now, may_wait, &a);
    return a;
}

void *take(uint32_t row, size_t bytes, uint32_t stream)
{
    static const tn_place_tier tier_of[TN_D_COUNT] = {[TN_D_T1] = TN_PLACE_T1, [TN_D_T2] = TN_PLACE_T2, [TN_D_T3] = TN_PLACE_T3,
                                                      [TN_D_T4] = TN_PLACE_T4, [TN_D_PACKED] = TN_PLACE_PACKED, [TN_D_T5B] = TN_PLACE_T5B};
    tn_place_answer a = ask(row, bytes, stream, 0);
    ck_assert_msg(a.address != NULL, "row %u, %zu bytes: spilled for reason %d", row, bytes, (int)a.spill);
    ck_assert_int_eq(a.spill, TN_PLACE_SERVED);
    ck_assert_int_eq(a.tier, tier_of[rows[row].discipline]);
    ck_assert_uint_eq(a.waits, 0);
    ck_assert_uint_eq(a.in_the_way, 0);
    ck_assert_uint_eq((uintptr_t)a.address % tn_native_alignment(rows[row].family, bytes), 0);
    return a.address;
}

uint64_t spill(uint32_t row, size_t bytes, uint32_t stream, tn_place_spill why)
{
    size_t before = waits;
    tn_place_answer a = ask(row, bytes, stream, 0);
    ck_assert_ptr_null(a.address);
    ck_assert_int_eq(a.spill, why);
    ck_assert_int_eq(a.tier, TN_PLACE_NATIVE);
    ck_assert_uint_eq(a.waits, 0);
    ck_assert_uint_eq(waits, before);
    return a.in_the_way;
}

void give(uint32_t row, void *address, uint32_t stream)
{
    tn_work_set clean = {.count = 0};
    expect_ok(tn_place_give(place, row, address, stream, &clean));
}

void give_used(uint32_t row, void *address, uint32_t stream, uint64_t queue)
{
    tn_work_set set = device_set(device_enqueue(queue));
    expect_ok(tn_place_give(place, row, address, stream, &set));
}
