/* T5b: blocks from slabs of exactly their flags, one owner each, and none handed out that the device may still touch. */
#include <pthread.h>
#include <string.h>

#include "fault_cuda.h"
#include "fixture.h"
#include "stand_in_cuda.h"
#include "tiers/pinned_slabs.h"

static tn_cuda table;
static tn_pinned *pinned[TN_PINNED_SETS];
static tn_pinned_slabs *slabs;
static uint64_t done_to; /* the one queue's progress */

static bool is_done(void *self, tn_work_mark mark)
{
    (void)self;
    return mark.sequence <= done_to;
}

static tn_work_mark all_work(void *self)
{
    (void)self;
    return (tn_work_mark){1, UINT64_MAX};
}

static const tn_work_table work_table = {.done = is_done, .all = all_work};
static const tn_work work = {&work_table, NULL};

static void begin(void)
{
    stand_in_start(0);
    table = *fault_cuda(stand_in_cuda());
    done_to = 0;
    for (unsigned i = 0; i < TN_PINNED_SETS; i++)
        expect_ok(tn_pinned_create(&(tn_pinned_options){.cuda = &table, .flags = i}, &pinned[i]));
}

static void open_with(size_t slab_bytes, size_t max_slabs, const tn_metadata *metadata)
{
    tn_pinned_slabs_options options = {
        .tag = "staging", .slab_bytes = slab_bytes, .max_slabs = max_slabs, .work = &work, .metadata = metadata};
    for (unsigned i = 0; i < TN_PINNED_SETS; i++)
        options.backends[i] = tn_pinned_backend(pinned[i]);
    expect_ok(tn_pinned_slabs_create(&options, &slabs));
}

static void end_backends(void)
{
    for (unsigned i = 0; i < TN_PINNED_SETS; i++)
        ck_assert_uint_eq(tn_pinned_destroy(pinned[i]), 0);
    ck_assert_uint_eq(stand_in_pinned(), 0);
}

static void end(void)
{
    expect_ok(tn_pinned_slabs_destroy(&slabs));
    ck_assert_ptr_null(slabs);
    end_backends();
}

static tn_pinned_slabs_stats stats_now(void)
{
    tn_pinned_slabs_stats stats;
    size_t sum = 0;
    tn_pinned_slabs_read_stats(slabs, &stats);
    for (unsigned i = 0; i < TN_PINNED_SETS; i++)
        sum += stats.capacity_of[i];
    ck_assert_uint_eq(stats.capacity, sum);
    ck_assert_uint_eq(stats.capacity, stand_in_pinned());
    ck_assert_uint_eq(stats.live, stats.takes - stats.gives);
    return stats;
}

static tn_pinned_block take(unsigned flags, size_t bytes)
{
    tn_pinned_block block;
    expect_ok(tn_pinned_slabs_take(slabs, flags, bytes, 0, &block));
    ck_assert_uint_eq((uintptr_t)block.data % 256, 0);
    ck_assert_uint_eq(block.bytes, bytes);
    memset(block.data, 1, bytes);
    return block;
}

static void give(tn_pinned_block *block)
{
    expect_ok(tn_pinned_slabs_give(slabs, block, NULL, 0));
    ck_assert_ptr_null(block->data);
}

static void give_at(tn_pinned_block *block, uint64_t sequence)
{
    expect_ok(tn_pinned_slabs_give(slabs, block, &(tn_work_mark){1, sequence}, 1));
}

START_TEST(bad_arguments_pin_nothing)
{
    tn_pinned_slabs *none = NULL;
    tn_pinned_slabs_options options = {.tag = "t", .slab_bytes = MIB, .max_slabs = 1};
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_create(NULL, &none));
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_create(&options, &none));
    options.backends[1] = tn_pinned_backend(pinned[1]);
    options.work = &(tn_work){0};
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_create(&options, &none));
    options.work = NULL;
    options.max_slabs = 0;
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_create(&options, &none));
    options.max_slabs = 1;
    expect_ok(tn_pinned_slabs_create(&options, &slabs));
    tn_pinned_block block;
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_take(slabs, 1, 0, 0, &block));
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_take(slabs, 1, 1, 3, &block));
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_take(slabs, 1, 1, 2 * TN_ALIGNMENT_MAX, &block));
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_take(slabs, 8, 1, 0, &block));
    expect_error(TN_MEM_E_UNSUPPORTED, tn_pinned_slabs_take(slabs, 2, 1, 0, &block));
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_pinned_slabs_take(slabs, 1, SIZE_MAX, 0, &block));
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_give(slabs, &block, NULL, 0));
    ck_assert_uint_eq(stats_now().slabs, 0);
    block = take(1, 64);
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_give(slabs, &block, &(tn_work_mark){1, 1}, 1)); /* no work table */
    give(&block);
    end();
}
END_TEST

START_TEST(flags_are_never_mixed)
{
    tn_pinned_block blocks[TN_PINNED_SETS];
    open_with(MIB, TN_PINNED_SETS, NULL);
    for (unsigned i = 0; i < TN_PINNED_SETS; i++) {
        unsigned flags = 99;
        blocks[i] = take(i, 4 * KIB);
        ck_assert_uint_eq(stand_in_last_flags(), i);
        ck_assert_uint_eq(stats_now().slabs, i + 1);
        expect_ok(tn_pinned_slabs_identity(slabs, (char *)blocks[i].data + 100, &flags));
        ck_assert_uint_eq(flags, i);
    }
    for (unsigned i = 0; i < TN_PINNED_SETS; i++) {
        ck_assert_uint_eq(stats_now().capacity_of[i], MIB);
        tn_pinned_block second = take(i, 4 * KIB); /* there is room in the slab of these flags */
        ck_assert_uint_eq(second.flags, i);
        give(&second);
    }
    tn_pinned_block large, other;
    expect_ok(tn_pinned_slabs_take(slabs, 1, MIB - 4 * KIB, 0, &large));
    /* Its own slab is full, those of others have room, and no slab more may be pinned. */
    expect_error(TN_MEM_E_EXHAUSTED, tn_pinned_slabs_take(slabs, 1, 64 * KIB, 0, &other));
    ck_assert_uint_eq(stats_now().exhausted, 1);
    give(&large);
    for (unsigned i = 0; i < TN_PINNED_SETS; i++)
        give(&blocks[i]);
    unsigned flags;
    expect_error(TN_MEM_E_STALE, tn_pinned_slabs_identity(slabs, &flags, &flags));
    end();
}
END_TEST

START_TEST(a_block_has_one_owner)
{
    open_with(MIB, 2, NULL);
    tn_pinned_block block = take(0, 4 * KIB), copy = block, moved = block;
    moved.data = (char *)moved.data + 256;
    expect_error(TN_MEM_E_STALE, tn_pinned_slabs_give(slabs, &moved, NULL, 0));
    give(&block);
    expect_error(TN_MEM_E_ARGUMENT, tn_pinned_slabs_give(slabs, &block, NULL, 0));
    expect_error(TN_MEM_E_STALE, tn_pinned_slabs_give(slabs, &copy, NULL, 0));
    tn_pinned_block next = take(0, 4 * KIB); /* the same place, another block */
    ck_assert_ptr_eq(next.data, copy.data);
    expect_error(TN_MEM_E_STALE, tn_pinned_slabs_give(slabs, &copy, NULL, 0));
    copy = next;
    give_at(&next, 5);
    expect_error(TN_MEM_E_STALE, tn_pinned_slabs_give(slabs, &copy, NULL, 0)); /* waiting */
    tn_pinned_slabs *first = slabs;
    open_with(MIB, 1, NULL);
    tn_pinned_block foreign = take(0, 64);
    expect_error(TN_MEM_E_FOREIGN, tn_pinned_slabs_give(first, &foreign, NULL, 0));
    give(&foreign);
    expect_ok(tn_pinned_slabs_destroy(&slabs));
    slabs = first;
    ck_assert_uint_eq(stats_now().bad_blocks, 5);
    done_to = 5;
    end();
}
END_TEST

START_TEST(what_is_not_clean_is_not_handed_out)
{
    open_with(MIB, 1, NULL);
    tn_pinned_block a = take(0, 512 * KIB), b = take(0, 256 * KIB), c;
    void *place = a.data;
    give_at(&a, 7);
    ck_assert_uint_eq(stats_now().waiting_bytes, 512 * KIB);
    expect_error(TN_MEM_E_MUST_WAIT, tn_pinned_slabs_take(slabs, 0, 300 * KIB, 0, &c));
    ck_assert_ptr_null(c.data);
    ck_assert_uint_eq(stats_now().must_wait, 1);
    expect_error(TN_MEM_E_EXHAUSTED, tn_pinned_slabs_take(slabs, 0, 600 * KIB, 0, &c)); /* no wait would help */
    give_at(&b, 9);
    expect_error(TN_MEM_E_MUST_WAIT, tn_pinned_slabs_take(slabs, 0, MIB, 0, &c));
    done_to = 8;
    c = take(0, 300 * KIB);
    ck_assert_ptr_eq(c.data, place);
    expect_error(TN_MEM_E_LEFTOVER, tn_pinned_slabs_destroy(&slabs));
    give(&c);
    expect_error(TN_MEM_E_MUST_WAIT, tn_pinned_slabs_destroy(&slabs));
    done_to = 9;
    c = take(0, MIB); /* all in one again */
    ck_assert_ptr_eq(c.data, place);
    ck_assert(stats_now().waiting == 0 && stats_now().waiting_bytes == 0);
    give(&c);
    end();
}
END_TEST

START_TEST(a_new_slab_comes_before_a_wait_and_a_large_block_has_its_own)
{
    open_with(MIB, 3, NULL);
    tn_pinned_block a = take(0, MIB), b, large;
    give_at(&a, 3);
    b = take(0, KIB);
    ck_assert_uint_eq(stats_now().slabs, 2);
    large = take(0, 5 * MIB);
    ck_assert_uint_eq(stats_now().capacity, 7 * MIB);
    give(&large);
    give(&b);
    expect_ok(tn_pinned_slabs_trim(slabs)); /* not the one whose work is not done */
    ck_assert_uint_eq(stats_now().slabs, 1);
    done_to = 3;
    expect_ok(tn_pinned_slabs_trim(slabs));
    ck_assert_uint_eq(stats_now().slabs, 0);
    ck_assert_uint_eq(stats_now().high_water, 5 * MIB + KIB);
    end();
}
END_TEST

START_TEST(blocks_are_aligned_as_asked)
{
    open_with(4 * MIB, 4, NULL);
    for (size_t alignment = 1; alignment <= MIB; alignment *= 2) {
        tn_pinned_block odd = take(0, 100), block;
        expect_ok(tn_pinned_slabs_take(slabs, 0, 300, alignment, &block));
        ck_assert_uint_eq((uintptr_t)block.data % alignment, 0);
        give(&odd);
        give(&block);
    }
    ck_assert_uint_eq(stats_now().slabs, 1);
    end();
}
END_TEST

START_TEST(what_a_backend_refuses_changes_nothing)
{
    open_with(MIB, 2, NULL);
    tn_pinned_block block;
    fault_set(1, 2, false);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_pinned_slabs_take(slabs, 0, KIB, 0, &block));
    ck_assert_ptr_null(block.data);
    block = take(0, KIB);
    give(&block);
    fault_set(1, 719, false);
    expect_error(TN_MEM_E_DRIVER, tn_pinned_slabs_trim(slabs));
    ck_assert_uint_eq(stats_now().slabs, 1);
    fault_set(1, 719, false);
    expect_error(TN_MEM_E_DRIVER, tn_pinned_slabs_destroy(&slabs));
    block = take(0, MIB); /* it is there still */
    ck_assert_uint_eq(stats_now().slabs, 1);
    give(&block);
    end();
}
END_TEST

typedef struct meagre {
    uint64_t left;
    size_t live;
} meagre;

static void *meagre_resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    meagre *m = self;
    if (new_bytes != 0 && m->left != 0 && --m->left == 0)
        return NULL;
    m->live += new_bytes - old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_bytes);
}

START_TEST(without_host_memory_nothing_changes)
{
    meagre m = {0};
    tn_metadata metadata = {meagre_resize, &m};
    tn_pinned_block blocks[40];
    open_with(MIB, 2, &metadata);
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        size_t got = 0;
        m.left = nth;
        tn_mem_error error = TN_MEM_OK;
        while (got < 40 && error == TN_MEM_OK) {
            error = tn_pinned_slabs_take(slabs, 0, 100, 0, &blocks[got]); /* leaves a gap behind each */
            got += error == TN_MEM_OK;
        }
        failed = error != TN_MEM_OK;
        if (failed)
            ck_assert_int_eq(error, TN_MEM_E_HOST_MEMORY);
        m.left = 0;
        ck_assert_uint_eq(stats_now().live, got);
        while (got > 0)
            give(&blocks[--got]);
        expect_ok(tn_pinned_slabs_trim(slabs));
        ck_assert_uint_eq(stats_now().slabs, 0);
        ck_assert_uint_lt(nth, 50);
    }
    expect_ok(tn_pinned_slabs_destroy(&slabs));
    ck_assert_uint_eq(m.live, 0);
    end_backends();
}
END_TEST

/* Random takes and gives; every live block is full of its own number, and no block overlaps another or one that waits. */
START_TEST(random_use_agrees_with_a_model)
{
    enum { SLOTS = 48 };
    struct {
        tn_pinned_block block;
        void *data;
        size_t bytes;
        uint64_t waits_for; /* given back, and not clean before */
    } slots[SLOTS];
    uint64_t seed = fixture_seed(11), sequence = 0;
    random_state random = {seed};
    memset(slots, 0, sizeof slots);
    open_with(256 * KIB, 4, NULL);
    for (size_t step = 0; step < 30000; step++) {
        size_t i = random_below(&random, SLOTS), live_bytes = 0;
        if (random_below(&random, 16) == 0)
            done_to = sequence - random_below(&random, sequence - done_to + 1);
        if (random_below(&random, 512) == 0)
            expect_ok(tn_pinned_slabs_trim(slabs));
        if (slots[i].block.data != NULL) {
            const unsigned char *bytes = slots[i].data;
            for (size_t k = 0; k < slots[i].bytes; k += slots[i].bytes / 3 + 1)
                ck_assert_msg(bytes[k] == (unsigned char)i, "%s", fixture_seed_line(seed, step));
            slots[i].waits_for = random_below(&random, 2) == 0 ? ++sequence : 0;
            tn_work_mark mark = {1, slots[i].waits_for};
            expect_ok(tn_pinned_slabs_give(slabs, &slots[i].block, &mark, slots[i].waits_for != 0));
        } else if (slots[i].waits_for <= done_to) {
            size_t bytes = 1 + random_below(&random, 24 * KIB);
            tn_mem_error got = tn_pinned_slabs_take(slabs, (unsigned)random_below(&random, 2), bytes,
                                                    (size_t)1 << random_below(&random, 13), &slots[i].block);
            ck_assert_msg(got == TN_MEM_OK || got == TN_MEM_E_MUST_WAIT || got == TN_MEM_E_EXHAUSTED, "%s: %s",
                          fixture_seed_line(seed, step), tn_mem_error_text(got));
            slots[i].data = slots[i].block.data;
            slots[i].bytes = bytes;
            for (size_t k = 0; k < SLOTS && got == TN_MEM_OK; k++) {
                bool there = k != i && (slots[k].block.data != NULL || slots[k].waits_for > done_to) && slots[k].data != NULL;
                ck_assert_msg(!there || (char *)slots[k].data + slots[k].bytes <= (char *)slots[i].data ||
                                  (char *)slots[i].data + bytes <= (char *)slots[k].data,
                              "%s: overlap", fixture_seed_line(seed, step));
            }
            if (got == TN_MEM_OK)
                memset(slots[i].data, (int)i, bytes);
        }
        for (size_t k = 0; k < SLOTS; k++)
            live_bytes += slots[k].block.data != NULL ? slots[k].bytes : 0;
        if (stats_now().live_bytes != live_bytes)
            ck_abort_msg("%s", fixture_seed_line(seed, step));
    }
    done_to = UINT64_MAX;
    for (size_t i = 0; i < SLOTS; i++)
        if (slots[i].block.data != NULL)
            give(&slots[i].block);
    end();
}
END_TEST

static void *work_on(void *which)
{
    for (int i = 0; i < 1500; i++) {
        tn_pinned_block block;
        if (tn_pinned_slabs_take(slabs, (unsigned)(uintptr_t)which, 64 * KIB, 0, &block) != TN_MEM_OK)
            return "no block";
        memset(block.data, i, 64);
        if (tn_pinned_slabs_give(slabs, &block, NULL, 0) != TN_MEM_OK)
            return "a block was lost";
        if (i % 100 == 0 && tn_pinned_slabs_trim(slabs) != TN_MEM_OK)
            return "a trim failed";
    }
    return NULL;
}

START_TEST(threads_take_and_give_and_trim)
{
    pthread_t threads[4];
    open_with(128 * KIB, 16, NULL);
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work_on, (void *)(i / 2)), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_msg(wrong == NULL, "%s", (const char *)wrong);
    }
    ck_assert_uint_eq(stats_now().takes, 6000);
    end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pinned_slabs");
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, bad_arguments_pin_nothing);
    tcase_add_test(tests, flags_are_never_mixed);
    tcase_add_test(tests, a_block_has_one_owner);
    tcase_add_test(tests, what_is_not_clean_is_not_handed_out);
    tcase_add_test(tests, a_new_slab_comes_before_a_wait_and_a_large_block_has_its_own);
    tcase_add_test(tests, blocks_are_aligned_as_asked);
    tcase_add_test(tests, what_a_backend_refuses_changes_nothing);
    tcase_add_test(tests, without_host_memory_nothing_changes);
    tcase_add_test(tests, random_use_agrees_with_a_model);
    tcase_add_test(tests, threads_take_and_give_and_trim);
    return fixture_run("pinned_slabs", tests);
}
