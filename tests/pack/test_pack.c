/* What holds for every placement: it is valid, deterministic, never worse than a member, and least where it says so. */
#include <stdio.h>
#include <string.h>

#include "fixture.h"

static const tn_pack_options little = {.steps = 2000000};

static bool alive_together(const tn_pack_buffer *a, const tn_pack_buffer *b)
{
    for (uint64_t t = 0; t < 64; t++) {
        bool both = a->lower <= t && t < a->upper && b->lower <= t && t < b->upper;
        for (size_t g = 0; both && g < a->gap_count; g++)
            both = !(a->gaps[g].lower <= t && t < a->gaps[g].upper);
        for (size_t g = 0; both && g < b->gap_count; g++)
            both = !(b->gaps[g].lower <= t && t < b->gaps[g].upper);
        if (both)
            return true;
    }
    return false;
}

/* The least height: some order places everything lowest-first at its best. Every order is tried. */
static uint64_t least_height(const instance *it, uint32_t *order, size_t placed, uint64_t *offset, uint64_t best)
{
    uint64_t height = 0;
    for (size_t k = 0; k < placed; k++)
        if (offset[order[k]] + it->buffers[order[k]].size > height)
            height = offset[order[k]] + it->buffers[order[k]].size;
    if (height >= best || placed == it->count)
        return height < best ? height : best;
    for (size_t k = placed; k < it->count; k++) {
        uint32_t i = order[k];
        const tn_pack_buffer *b = &it->buffers[i];
        uint64_t align = b->alignment ? b->alignment : 1, at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (size_t j = 0; j < placed; j++) {
                const tn_pack_buffer *o = &it->buffers[order[j]];
                if (o->size && b->size && alive_together(b, o) && at < offset[order[j]] + o->size && offset[order[j]] < at + b->size) {
                    at = (offset[order[j]] + o->size + align - 1) / align * align;
                    moved = true;
                }
            }
        }
        order[k] = order[placed];
        order[placed] = i;
        offset[i] = at;
        best = least_height(it, order, placed + 1, offset, best);
        order[placed] = order[k];
        order[k] = i;
    }
    return best;
}

static uint64_t by_hand(const instance *it)
{
    uint32_t order[16];
    uint64_t offset[16] = {0};
    for (uint32_t k = 0; k < it->count; k++)
        order[k] = k;
    return least_height(it, order, 0, offset, UINT64_MAX);
}

START_TEST(small_instances_get_the_least_height)
{
    random_state random = {fixture_seed(21)};
    for (int round = 0; round < 1500; round++) {
        instance it = {0};
        instance_random(&it, &random, 1 + random_below(&random, 7), 12, 3, 9);
        instance_pack(&it, NULL);
        ck_assert_uint_eq(it.result.height, by_hand(&it));
        ck_assert(it.result.proved);
        instance_free(&it);
    }
}
END_TEST

static uint64_t divisor(uint64_t a, uint64_t b)
{
    return b ? divisor(b, a % b) : a;
}

START_TEST(small_instances_with_gaps_and_alignments_get_it_too)
{
    random_state random = {fixture_seed(22)};
    static const uint64_t alignments[] = {0, 1, 2, 3, 4, 6};
    for (int round = 0; round < 1500; round++) {
        instance it = {0};
        tn_pack_gap gaps[8][2];
        instance_random(&it, &random, 1 + random_below(&random, 6), 16, 6, 9);
        for (size_t k = 0; k < it.count; k++) {
            tn_pack_buffer *b = &it.buffers[k];
            uint64_t at = b->lower;
            b->alignment = alignments[random_below(&random, 6)];
            b->gaps = gaps[k];
            for (int g = 0; g < 2 && at + 2 < b->upper; g++) {
                gaps[k][g].lower = at + random_below(&random, 2) + (g > 0);
                gaps[k][g].upper = gaps[k][g].lower + 1 + random_below(&random, b->upper - gaps[k][g].lower);
                at = gaps[k][g].upper;
                b->gap_count++;
            }
        }
        instance_pack(&it, NULL);
        /* It counts in units of the common alignment: less than one of them may be left at the top. */
        uint64_t unit = 0, least = by_hand(&it);
        for (size_t k = 0; k < it.count; k++)
            unit = divisor(it.buffers[k].alignment ? it.buffers[k].alignment : 1, unit);
        ck_assert_uint_ge(it.result.height, least);
        ck_assert_uint_lt(it.result.height - least, unit);
        ck_assert_uint_le(it.result.lower_bound, least);
        instance_free(&it);
    }
}
END_TEST

START_TEST(the_order_of_the_buffers_does_not_matter)
{
    random_state random = {fixture_seed(23)};
    for (int round = 0; round < 30; round++) {
        instance it = {0};
        uint64_t offset[200];
        instance_random(&it, &random, 20 + random_below(&random, 180), 100, 10, 1000);
        instance_pack(&it, &little);
        tn_pack_result first = it.result;
        for (size_t k = 0; k < it.count; k++)
            offset[it.buffers[k].id] = it.offsets[k];
        instance_shuffle(&it, &random);
        instance_pack(&it, &little);
        for (size_t k = 0; k < it.count; k++)
            ck_assert_uint_eq(it.offsets[k], offset[it.buffers[k].id]);
        ck_assert_uint_eq(it.result.height, first.height);
        ck_assert_uint_eq(it.result.steps, first.steps);
        ck_assert_int_eq(it.result.winner, first.winner);
        instance_free(&it);
    }
}
END_TEST

START_TEST(searching_is_never_worse_than_the_best_member)
{
    random_state random = {fixture_seed(24)};
    for (int round = 0; round < 20; round++) {
        instance it = {0};
        instance_random(&it, &random, 150, 100, 12, 1000);
        tn_pack_options options = {.greedy_only = true};
        instance_pack(&it, &options);
        uint64_t best = UINT64_MAX;
        for (int m = 0; m < TN_PACK_IMPROVED; m++)
            if (it.result.members[m].ran && it.result.members[m].height < best)
                best = it.result.members[m].height;
        ck_assert_uint_eq(it.result.height, best);
        ck_assert(!it.result.members[TN_PACK_IMPROVED].ran && !it.result.members[TN_PACK_EXACT].ran);
        options.greedy_only = false;
        for (options.steps = 1; options.steps <= 16000000; options.steps *= 40) {
            instance_pack(&it, &options);
            ck_assert_uint_le(it.result.height, best);
        }
        instance_free(&it);
    }
}
END_TEST

START_TEST(the_bound_is_the_live_peak_or_what_a_search_proved)
{
    random_state random = {fixture_seed(25)};
    for (int round = 0; round < 50; round++) {
        instance it = {0};
        instance_random(&it, &random, 60, 40, 6, 50);
        tn_pack_options options = {.greedy_only = true};
        instance_pack(&it, &options);
        ck_assert_uint_eq(it.result.lower_bound, instance_live_peak(&it));
        instance_pack(&it, &little);
        ck_assert_uint_ge(it.result.lower_bound, instance_live_peak(&it));
        instance_free(&it);
    }
}
END_TEST

START_TEST(a_plan_given_as_hints_is_never_lost)
{
    random_state random = {fixture_seed(26)};
    for (int round = 0; round < 20; round++) {
        instance it = {0};
        instance_random(&it, &random, 120, 100, 12, 1000);
        instance_pack(&it, &(tn_pack_options){.steps = 30000000});
        uint64_t height = it.result.height;
        for (size_t k = 0; k < it.count; k++)
            it.buffers[k].hint = it.offsets[k];
        instance_pack(&it, &(tn_pack_options){.greedy_only = true});
        ck_assert_uint_le(it.result.height, height);
        ck_assert(it.result.members[TN_PACK_HINTS].ran);
        for (size_t k = 0; k < it.count; k++) /* hints that mean nothing do no harm */
            it.buffers[k].hint = random_next(&random) >> random_below(&random, 64);
        instance_pack(&it, &little);
        instance_free(&it);
    }
}
END_TEST

START_TEST(a_graph_of_the_same_conflicts_is_packed_as_well)
{
    random_state random = {fixture_seed(27)};
    for (int round = 0; round < 300; round++) {
        instance it = {0};
        tn_pack_conflict conflicts[64];
        size_t count = 0;
        instance_random(&it, &random, 1 + random_below(&random, 7), 12, 3, 9);
        for (uint32_t a = 0; a < it.count; a++)
            for (uint32_t b = 0; b < a; b++)
                if (alive_together(&it.buffers[a], &it.buffers[b]))
                    conflicts[count++] = random_below(&random, 2) ? (tn_pack_conflict){a, b} : (tn_pack_conflict){b, a};
        if (count > 0)
            conflicts[count++] = conflicts[0]; /* pairs may repeat */
        size_t culprit;
        tn_pack_fault fault;
        ck_assert_int_eq(tn_pack_graph(it.buffers, it.count, conflicts, count, NULL, it.offsets, &it.result, &culprit), TN_PACK_OK);
        ck_assert_int_eq(tn_pack_check_graph(it.buffers, it.count, conflicts, count, it.offsets, it.result.height, &fault), TN_PACK_HOLDS);
        ck_assert_int_eq(tn_pack_check(it.buffers, it.count, it.offsets, it.result.height, &fault), TN_PACK_HOLDS);
        ck_assert_uint_eq(it.result.height, by_hand(&it));
        instance_free(&it);
    }
}
END_TEST

START_TEST(a_conflict_graph_that_no_clock_explains_is_packed)
{
    /* A ring of five: any two neighbours conflict, so two units do not suffice for sizes of one, and three do. */
    instance it = {0};
    const tn_pack_conflict ring[] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}};
    for (int k = 0; k < 5; k++)
        instance_add(&it, 0, 0, 1);
    size_t culprit;
    ck_assert_int_eq(tn_pack_graph(it.buffers, 5, ring, 5, NULL, it.offsets, &it.result, &culprit), TN_PACK_OK);
    ck_assert_uint_eq(it.result.height, 3);
    ck_assert(it.result.proved);
    instance_free(&it);
}
END_TEST

START_TEST(random_conflict_graphs_hold_in_any_order)
{
    random_state random = {fixture_seed(29)};
    for (int round = 0; round < 60; round++) {
        instance it = {0};
        uint32_t n = 2 + (uint32_t)random_below(&random, 80);
        uint64_t density = 1 + random_below(&random, 9), offsets[100];
        tn_pack_conflict *conflicts = malloc(n * n * sizeof(*conflicts));
        size_t count = 0, culprit;
        tn_pack_fault fault;
        instance_random(&it, &random, n, 100, 10, 1000);
        for (uint32_t a = 0; a < n; a++) {
            it.buffers[a].alignment = UINT64_C(1) << random_below(&random, 6);
            for (uint32_t b = 0; b < a; b++)
                if (random_below(&random, 10) < density)
                    conflicts[count++] = (tn_pack_conflict){a, b};
        }
        ck_assert_int_eq(tn_pack_graph(it.buffers, n, conflicts, count, &little, it.offsets, &it.result, &culprit), TN_PACK_OK);
        ck_assert_int_eq(tn_pack_check_graph(it.buffers, n, conflicts, count, it.offsets, it.result.height, &fault), TN_PACK_HOLDS);
        ck_assert_uint_le(it.result.lower_bound, it.result.height);
        for (uint32_t k = 0; k < n / 2; k++) { /* turn the buffers round, and the pairs with them */
            tn_pack_buffer buffer = it.buffers[k];
            it.buffers[k] = it.buffers[n - 1 - k];
            it.buffers[n - 1 - k] = buffer;
        }
        for (size_t k = 0; k < count; k++)
            conflicts[k] = (tn_pack_conflict){n - 1 - conflicts[k].b, n - 1 - conflicts[k].a};
        ck_assert_int_eq(tn_pack_graph(it.buffers, n, conflicts, count, &little, offsets, &it.result, &culprit), TN_PACK_OK);
        for (uint32_t k = 0; k < n; k++)
            ck_assert_uint_eq(offsets[k], it.offsets[n - 1 - k]);
        free(conflicts);
        instance_free(&it);
    }
}
END_TEST

START_TEST(what_is_never_alive_or_empty_conflicts_with_nothing)
{
    instance it = {0};
    instance_add(&it, 5, 5, 100);
    instance_add(&it, 0, 10, 0);
    instance_add(&it, 0, 10, 7);
    instance_pack(&it, NULL);
    ck_assert_uint_eq(it.result.height, 100);
    for (size_t k = 0; k < it.count; k++)
        ck_assert_uint_eq(it.offsets[k], 0);
    instance_free(&it);
    ck_assert_int_eq(tn_pack(NULL, 0, NULL, NULL, &it.result, NULL), TN_PACK_OK);
    ck_assert_uint_eq(it.result.height, 0);
}
END_TEST

static tn_pack_error pack_two(tn_pack_buffer a, tn_pack_buffer b, size_t *culprit)
{
    tn_pack_buffer two[] = {a, b};
    uint64_t offsets[] = {77, 77};
    tn_pack_result result;
    *culprit = 99;
    tn_pack_error error = tn_pack(two, 2, NULL, offsets, &result, culprit);
    if (error)
        ck_assert(offsets[0] == 77 && offsets[1] == 77);
    return error;
}

START_TEST(what_cannot_be_packed_is_refused_by_name)
{
    const tn_pack_buffer good = {.id = 1, .lower = 0, .upper = 4, .size = 8};
    const tn_pack_gap outside = {2, 9}, empty = {2, 2}, touching[] = {{1, 2}, {2, 3}};
    tn_pack_buffer bad = {.id = 2, .lower = 5, .upper = 4, .size = 8};
    size_t culprit;
    ck_assert_int_eq(pack_two(good, bad, &culprit), TN_PACK_E_LIFETIME);
    ck_assert_uint_eq(culprit, 1);
    bad.lower = 0;
    bad.id = 1;
    ck_assert_int_eq(pack_two(good, bad, &culprit), TN_PACK_E_DUPLICATE);
    ck_assert_uint_eq(culprit, 1);
    bad.id = 2;
    bad.gap_count = 1;
    bad.gaps = &outside;
    ck_assert_int_eq(pack_two(bad, good, &culprit), TN_PACK_E_GAP);
    ck_assert_uint_eq(culprit, 0);
    bad.gaps = &empty;
    ck_assert_int_eq(pack_two(bad, good, &culprit), TN_PACK_E_GAP);
    bad.gaps = touching;
    bad.gap_count = 2;
    ck_assert_int_eq(pack_two(bad, good, &culprit), TN_PACK_E_GAP);
    bad.gap_count = 0;
    bad.alignment = UINT64_MAX;
    ck_assert_int_eq(pack_two(good, bad, &culprit), TN_PACK_E_ALIGNMENT);
    bad.alignment = 0;
    bad.size = UINT64_MAX;
    ck_assert_int_eq(pack_two(good, bad, &culprit), TN_PACK_E_OVERFLOW);
    bad.size = (UINT64_C(1) << 62) - 4;
    ck_assert_int_eq(pack_two(good, bad, &culprit), TN_PACK_E_OVERFLOW);
    bad.size = UINT64_C(1) << 61;
    ck_assert_int_eq(pack_two(good, bad, &culprit), TN_PACK_OK);
    tn_pack_result result;
    uint64_t offsets[1];
    const tn_pack_conflict self = {0, 0}, far = {0, 1};
    ck_assert_int_eq(tn_pack_graph(&good, 1, &self, 1, NULL, offsets, &result, &culprit), TN_PACK_E_CONFLICT);
    ck_assert_int_eq(tn_pack_graph(&good, 1, &far, 1, NULL, offsets, &result, &culprit), TN_PACK_E_CONFLICT);
}
END_TEST

START_TEST(each_error_and_member_has_a_text_of_its_own)
{
    for (int a = 0; a < TN_PACK_ERROR_COUNT; a++)
        for (int b = 0; b < a; b++)
            ck_assert_str_ne(tn_pack_error_text((tn_pack_error)a), tn_pack_error_text((tn_pack_error)b));
    for (int a = 0; a < TN_PACK_MEMBER_COUNT; a++)
        for (int b = 0; b < a; b++)
            ck_assert_str_ne(tn_pack_member_name((tn_pack_member)a), tn_pack_member_name((tn_pack_member)b));
    ck_assert_str_eq(tn_pack_error_text((tn_pack_error)-1), "an unknown error");
}
END_TEST

START_TEST(random_instances_with_everything_hold)
{
    uint64_t seed = fixture_seed(28);
    random_state random = {seed};
    for (int round = 0; round < 200; round++) {
        instance it = {0};
        uint64_t scale = UINT64_C(1) << random_below(&random, 40);
        instance_random(&it, &random, 1 + random_below(&random, 120), 1 + random_below(&random, 1000), 1 + random_below(&random, 300), 1000);
        tn_pack_gap *gaps = calloc(it.count, sizeof(*gaps));
        for (size_t k = 0; k < it.count; k++) {
            tn_pack_buffer *b = &it.buffers[k];
            b->size = b->size * scale + random_below(&random, scale);
            b->alignment = random_below(&random, 3) ? UINT64_C(1) << random_below(&random, 22) : random_below(&random, 3000);
            if (b->upper - b->lower > 3 && random_below(&random, 2)) {
                gaps[k] = (tn_pack_gap){b->lower + 1, b->lower + 2 + random_below(&random, b->upper - b->lower - 2)};
                b->gaps = &gaps[k];
                b->gap_count = 1;
            }
        }
        instance_pack(&it, &(tn_pack_options){.steps = 200000});
        free(gaps);
        instance_free(&it);
    }
}
END_TEST

/* Two buffers in use in turn, 300 000 times each: as scratch that comes with every step of a long run is. */
START_TEST(hundreds_of_thousands_of_gaps_take_no_square_of_that)
{
    enum { TIMES = 300000 };
    tn_pack_gap *gaps[2];
    tn_pack_buffer buffers[2];
    uint64_t offsets[2];
    tn_pack_result result;
    tn_pack_options options = {.greedy_only = 1};
    for (uint64_t b = 0; b < 2; b++) {
        gaps[b] = malloc(TIMES * sizeof *gaps[b]);
        ck_assert_ptr_nonnull(gaps[b]);
        for (uint64_t i = 0; i < TIMES; i++)
            gaps[b][i] = (tn_pack_gap){.lower = 4 * i + b + 2, .upper = 4 * i + b + 4}; /* in use for two of four, the other's last one among them */
        buffers[b] = (tn_pack_buffer){.id = b, .lower = b, .upper = 4 * TIMES + b + 2, .size = 512, .alignment = 512, .hint = TN_PACK_NO_HINT,
                                      .gaps = gaps[b], .gap_count = TIMES};
    }
    ck_assert_int_eq(tn_pack(buffers, 2, &options, offsets, &result, NULL), TN_PACK_OK);
    ck_assert_uint_eq(result.height, 1024);
    ck_assert_uint_eq(result.lower_bound, 1024);
    free(gaps[0]);
    free(gaps[1]);
}
END_TEST

/* Slots of a server: each in use a thousand times, many at once, the same ones meeting again and again. The same placement as by the pairs alone. */
START_TEST(slots_that_meet_again_and_again_take_no_square_of_it)
{
    enum { SLOTS = 128, TIMES = 1000 };
    random_state random = {fixture_seed(77)};
    tn_pack_gap *gaps = malloc(sizeof *gaps * SLOTS * TIMES);
    tn_pack_conflict *pairs = malloc(sizeof *pairs * SLOTS * SLOTS);
    tn_pack_buffer buffers[SLOTS];
    uint64_t offsets[SLOTS], by_pairs[SLOTS];
    size_t count = 0;
    tn_pack_result result, of_pairs;
    tn_pack_options options = {.greedy_only = 1};
    ck_assert(gaps && pairs);
    for (uint64_t b = 0; b < SLOTS; b++) {
        /* In each step of 16 from its own moment on, for 1 to 3 or, every third slot, for 6. */
        uint64_t from = b % 8, length = b % 3 == 0 ? 6 : 1 + random_below(&random, 3);
        for (uint64_t i = 0; i < TIMES; i++)
            gaps[b * TIMES + i] = (tn_pack_gap){.lower = 16 * i + from + length, .upper = 16 * (i + 1) + from};
        buffers[b] = (tn_pack_buffer){.id = b, .lower = from, .upper = 16 * TIMES + from + length, .size = 512 * (1 + random_below(&random, 64)), .alignment = 512,
                                      .hint = TN_PACK_NO_HINT, .gaps = gaps + b * TIMES, .gap_count = TIMES};
    }
    for (uint32_t a = 0; a < SLOTS; a++) /* what they do in one step they do in each */
        for (uint32_t b = 0; b < a; b++)
            if (buffers[a].lower < buffers[b].gaps[0].lower && buffers[b].lower < buffers[a].gaps[0].lower)
                pairs[count++] = (tn_pack_conflict){.a = a, .b = b};
    ck_assert_int_eq(tn_pack(buffers, SLOTS, &options, offsets, &result, NULL), TN_PACK_OK);
    ck_assert_int_eq(tn_pack_graph(buffers, SLOTS, pairs, count, &options, by_pairs, &of_pairs, NULL), TN_PACK_OK);
    ck_assert_uint_eq(result.conflicts, count);
    ck_assert_uint_eq(result.height, of_pairs.height);
    ck_assert_msg(result.steps < 100000, "%llu steps", (unsigned long long)result.steps); /* piece by piece they were thousands of millions */
    for (uint32_t k = 0; k < count; k++)
        ck_assert(offsets[pairs[k].a] >= offsets[pairs[k].b] + buffers[pairs[k].b].size || offsets[pairs[k].b] >= offsets[pairs[k].a] + buffers[pairs[k].a].size);
    free(gaps);
    free(pairs);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pack");
    tcase_add_test(tests, small_instances_get_the_least_height);
    tcase_add_test(tests, small_instances_with_gaps_and_alignments_get_it_too);
    tcase_add_test(tests, the_order_of_the_buffers_does_not_matter);
    tcase_add_test(tests, searching_is_never_worse_than_the_best_member);
    tcase_add_test(tests, the_bound_is_the_live_peak_or_what_a_search_proved);
    tcase_add_test(tests, a_plan_given_as_hints_is_never_lost);
    tcase_add_test(tests, a_graph_of_the_same_conflicts_is_packed_as_well);
    tcase_add_test(tests, a_conflict_graph_that_no_clock_explains_is_packed);
    tcase_add_test(tests, random_conflict_graphs_hold_in_any_order);
    tcase_add_test(tests, what_is_never_alive_or_empty_conflicts_with_nothing);
    tcase_add_test(tests, what_cannot_be_packed_is_refused_by_name);
    tcase_add_test(tests, hundreds_of_thousands_of_gaps_take_no_square_of_that);
    tcase_add_test(tests, slots_that_meet_again_and_again_take_no_square_of_it);
    tcase_add_test(tests, each_error_and_member_has_a_text_of_its_own);
    tcase_add_test(tests, random_instances_with_everything_hold);
    return fixture_run("pack", tests);
}
