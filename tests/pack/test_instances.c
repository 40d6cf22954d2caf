/* Twenty instances, ten at random and ten cut from a rectangle that they fit exactly, each with the height over the lower bound
 * that it may have at most; and hostile shapes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fixture.h"

static const struct {
    size_t count;
    uint64_t time, length, size;
    double ceiling;
} random_ones[] = {
    {60, 100, 15, 100, 1.0},        {100, 100, 20, 1000, 1.0},   {150, 1000, 100, 1 << 20, 1.0}, {200, 50, 10, 64, 1.0},
    {250, 1000, 60, 1 << 16, 1.0},  {300, 200, 20, 100000, 1.0}, {400, 4000, 90, 4096, 1.0},     {600, 100, 10, 1 << 30, 1.0},
    {1000, 10000, 200, 1 << 12, 1.01}, {5000, 5000, 60, 1 << 20, 1.08},
};

static const struct {
    size_t count;
    uint64_t time, height;
    double ceiling;
} cut_ones[] = {
    {20, 50, 100, 1.0},   {30, 100, 1000, 1.0},     {40, 100, 1000, 1.0},   {50, 200, 1 << 20, 1.0},    {70, 300, 1 << 20, 1.0},
    {100, 500, 4096, 1.0}, {150, 1000, 1 << 20, 1.0}, {200, 64, 65536, 1.01}, {400, 2000, 1 << 30, 1.0}, {2000, 10000, 1 << 30, 1.16},
};

static void hold(const instance *it, const char *kind, int number, double ceiling)
{
    double ratio = (double)it->result.height / (double)it->result.lower_bound;
    printf("%s %d: %zu buffers, ratio %.4f of at most %.2f, %s, %.0f million steps\n", kind, number, it->count, ratio, ceiling,
           tn_pack_member_name(it->result.winner), (double)it->result.steps / 1e6);
    fflush(stdout);
    ck_assert_double_le(ratio, ceiling);
}

START_TEST(a_random_instance_stays_below_its_ceiling)
{
    instance it = {0};
    random_state random = {1000 + (uint64_t)_i};
    instance_random(&it, &random, random_ones[_i].count, random_ones[_i].time, random_ones[_i].length, random_ones[_i].size);
    instance_pack(&it, &(tn_pack_options){.steps = 200000000});
    hold(&it, "random", _i, random_ones[_i].ceiling);
    instance_free(&it);
}
END_TEST

START_TEST(a_cut_instance_stays_below_its_ceiling)
{
    instance it = {0};
    random_state random = {2000 + (uint64_t)_i};
    instance_cut(&it, &random, cut_ones[_i].count, cut_ones[_i].time, cut_ones[_i].height);
    ck_assert_uint_eq(it.count, cut_ones[_i].count);
    ck_assert_uint_eq(instance_live_peak(&it), cut_ones[_i].height);
    instance_pack(&it, &(tn_pack_options){.steps = 200000000});
    ck_assert_uint_eq(it.result.lower_bound, cut_ones[_i].height);
    hold(&it, "cut", _i, cut_ones[_i].ceiling);
    instance_free(&it);
}
END_TEST

START_TEST(all_alive_at_once_is_a_stack)
{
    instance it = {0};
    for (uint64_t k = 0; k < 3000; k++)
        instance_add(&it, 0, 1, 1 + k % 17);
    instance_pack(&it, NULL);
    ck_assert(it.result.proved);
    ck_assert_uint_eq(it.result.height, instance_live_peak(&it));
    ck_assert_uint_lt(it.result.steps, 1000000000);
    instance_free(&it);
}
END_TEST

START_TEST(a_ladder_needs_two_rungs)
{
    instance it = {0};
    for (uint64_t k = 0; k < 20000; k++)
        instance_add(&it, k, k + 2, 100);
    instance_pack(&it, NULL);
    ck_assert_uint_eq(it.result.height, 200);
    ck_assert(it.result.proved);
    instance_free(&it);
}
END_TEST

START_TEST(a_comb_keeps_its_teeth_apart)
{
    /* Long thin buffers, and between them short thick ones that come and go. */
    instance it = {0};
    for (uint64_t k = 0; k < 300; k++)
        instance_add(&it, k, 1000 + k, 1);
    for (uint64_t k = 0; k < 1200; k++)
        instance_add(&it, k, k + 1, 50 + k % 3);
    instance_pack(&it, &(tn_pack_options){.steps = 100000000});
    ck_assert_double_le((double)it.result.height / (double)it.result.lower_bound, 1.01);
    instance_free(&it);
}
END_TEST

START_TEST(parts_that_never_meet_are_packed_one_by_one)
{
    instance it = {0};
    random_state random = {fixture_seed(41)};
    for (uint64_t part = 0; part < 500; part++)
        for (int k = 0; k < 8; k++) {
            uint64_t lower = 100 * part + random_below(&random, 20);
            instance_add(&it, lower, lower + 1 + random_below(&random, 30), 1 + random_below(&random, 100));
        }
    instance_pack(&it, NULL);
    ck_assert_uint_ge(it.result.parts, 500);
    ck_assert(it.result.proved);
    instance_free(&it);
}
END_TEST

START_TEST(sixty_two_thousand_buffers_take_seconds)
{
    instance it = {0};
    random_state random = {fixture_seed(42)};
    for (int k = 0; k < 62000; k++) { /* a third lives long, as weights and saved activations do */
        uint64_t lower = random_below(&random, 90000), life = k % 3 == 0 ? random_below(&random, 40000) : random_below(&random, 30);
        instance_add(&it, lower, lower + 1 + life, 1 + (random_next(&random) >> (34 + random_below(&random, 20))));
    }
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    instance_pack(&it, &(tn_pack_options){.steps = 1500000000});
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    hold(&it, "large", 0, 1.06);
    printf("%.1f s of a core\n", seconds);
    ck_assert_double_lt(seconds, 20);
    instance_free(&it);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("instances");
    tcase_add_loop_test(tests, a_random_instance_stays_below_its_ceiling, 0, sizeof(random_ones) / sizeof(random_ones[0]));
    tcase_add_loop_test(tests, a_cut_instance_stays_below_its_ceiling, 0, sizeof(cut_ones) / sizeof(cut_ones[0]));
    tcase_add_test(tests, all_alive_at_once_is_a_stack);
    tcase_add_test(tests, a_ladder_needs_two_rungs);
    tcase_add_test(tests, a_comb_keeps_its_teeth_apart);
    tcase_add_test(tests, parts_that_never_meet_are_packed_one_by_one);
    tcase_add_test(tests, sixty_two_thousand_buffers_take_seconds);
    return fixture_run("instances", tests);
}
