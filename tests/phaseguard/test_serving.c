/* What counts while serving, told from events. */
#include <check.h>
#include <stdlib.h>

#include "phaseguard/serving.h"

static tn_event alloc(uint8_t kind, uint64_t bytes, int32_t result)
{
    return (tn_event){.type = TN_EV_ALLOC, .kind = kind, .device = kind == TN_KIND_PINNED ? TN_DEVICE_NONE : 0, .bytes = bytes, .result = result};
}

static tn_serving_what tell(tn_serving_thread *t, tn_event e)
{
    return tn_serving_event(t, &e);
}

START_TEST(kinds_that_take_memory)
{
    static const uint8_t counted[] = {TN_KIND_DEVICE, TN_KIND_PITCH, TN_KIND_ASYNC, TN_KIND_POOL, TN_KIND_MANAGED, TN_KIND_PINNED,
                                      TN_KIND_REGISTERED, TN_KIND_ARRAY, TN_KIND_MIPMAP, TN_KIND_VMM_HANDLE};
    tn_serving_thread t = {0};
    for (size_t i = 0; i < sizeof counted; i++)
        ck_assert_int_eq(tell(&t, alloc(counted[i], 64, 0)), TN_SERVING_ALLOCATION);
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_GRAPH, 64, 0)), TN_SERVING_NOTHING);
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_IMPORTED, 64, 0)), TN_SERVING_NOTHING);
    for (uint8_t type = TN_EV_NONE; type < TN_EV_TYPE_COUNT; type++)
        if (type != TN_EV_ALLOC && type != TN_EV_CHARGE && type != TN_EV_ARENA)
            ck_assert_int_eq(tell(&t, (tn_event){.type = type, .kind = 1, .bytes = 1, .aux = 2}), TN_SERVING_NOTHING);
}
END_TEST

START_TEST(what_a_tier_serves_is_no_allocation_of_the_driver)
{
    tn_serving_thread t = {0};
    tn_serving_counts c = {0};
    tn_event e = alloc(TN_KIND_DEVICE, 64, 0);
    e.aux2 = (uint64_t)TN_ROUTE_PACKED << 32;
    ck_assert_int_eq(tell(&t, e), TN_SERVING_SERVED);
    tn_serving_add(&c, TN_SERVING_SERVED, &e, 0);
    ck_assert_uint_eq(c.served_allocations, 1);
    ck_assert_uint_eq(c.driver_allocations, 0);
    e.aux2 = (uint64_t)(TN_ROUTE_TOO_MANY << TN_ROUTE_CAUSE_SHIFT) << 32; /* spilled */
    ck_assert_int_eq(tell(&t, e), TN_SERVING_ALLOCATION);
    e = alloc(TN_KIND_POOL, 64, 0);
    e.aux2 = (uint64_t)5 << 32; /* a pool's handle is no route */
    ck_assert_int_eq(tell(&t, e), TN_SERVING_ALLOCATION);
    ck_assert_int_eq(tell(&t, (tn_event){.type = TN_EV_ARENA, .kind = TN_KIND_DEVICE, .bytes = 64}), TN_SERVING_ALLOCATION);
    ck_assert_int_eq(tell(&t, (tn_event){.type = TN_EV_ARENA, .kind = TN_KIND_DEVICE, .bytes = 64, .result = 1}), TN_SERVING_NOTHING);
}
END_TEST

START_TEST(a_ladder_is_one_allocation)
{
    tn_serving_thread t = {0};
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_DEVICE, 64 << 20, 2)), TN_SERVING_ALLOCATION);
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_DEVICE, 32 << 20, 2)), TN_SERVING_RETRY);
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_DEVICE, 32 << 20, 2)), TN_SERVING_RETRY); /* after it emptied its caches */
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_DEVICE, 8 << 20, 0)), TN_SERVING_RETRY);
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_DEVICE, 8 << 20, 0)), TN_SERVING_ALLOCATION);
}
END_TEST

START_TEST(no_retry)
{
    tn_serving_thread t = {0}, other = {0};
    tell(&t, alloc(TN_KIND_DEVICE, 64, 2));
    ck_assert_int_eq(tell(&other, alloc(TN_KIND_DEVICE, 64, 0)), TN_SERVING_ALLOCATION); /* another thread's */
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_DEVICE, 65, 0)), TN_SERVING_ALLOCATION);     /* asks for more */
    tell(&t, alloc(TN_KIND_DEVICE, 64, 2));
    ck_assert_int_eq(tell(&t, alloc(TN_KIND_PINNED, 64, 0)), TN_SERVING_ALLOCATION); /* other memory */
    tell(&t, alloc(TN_KIND_DEVICE, 64, 2));
    tn_event elsewhere = alloc(TN_KIND_DEVICE, 64, 0);
    elsewhere.device = 1;
    ck_assert_int_eq(tell(&t, elsewhere), TN_SERVING_ALLOCATION);
}
END_TEST

START_TEST(growth_that_no_call_asked_for)
{
    tn_serving_thread t = {0};
    tn_event e = {.type = TN_EV_CHARGE, .kind = TN_CHARGE_LAUNCH, .bytes = 100, .aux = 200, .aux2 = TN_CHARGE_ALONE};
    ck_assert_int_eq(tell(&t, e), TN_SERVING_CHARGE);
    e.kind = TN_CHARGE_GRAPH;
    ck_assert_int_eq(tell(&t, e), TN_SERVING_GRAPH);
    e.kind = TN_CHARGE_READING;
    ck_assert_int_eq(tell(&t, e), TN_SERVING_NOTHING);
    e.kind = TN_CHARGE_LAUNCH;
    e.aux2 = TN_CHARGE_QUIET_BEFORE | TN_CHARGE_QUIET_AFTER; /* another thread's call may have taken it */
    ck_assert_int_eq(tell(&t, e), TN_SERVING_NOTHING);
    e.aux2 = TN_CHARGE_ALONE | TN_CHARGE_BLIND;
    ck_assert_int_eq(tell(&t, e), TN_SERVING_NOTHING);
    e.aux2 = TN_CHARGE_ALONE;
    e.aux = 100; /* nothing was taken */
    ck_assert_int_eq(tell(&t, e), TN_SERVING_NOTHING);
}
END_TEST

START_TEST(growth_of_pools)
{
    tn_serving_held held = {0};
    tn_event e = {.type = TN_EV_CHARGE, .kind = TN_CHARGE_POOL, .bytes = 32 << 20, .aux = 1 << 20};
    ck_assert_int_eq(tn_serving_pool(&held, &e), TN_SERVING_POOL);
    ck_assert_int_eq(tn_serving_pool(&held, &e), TN_SERVING_NOTHING);
    e.bytes = 0; /* trimmed */
    ck_assert_int_eq(tn_serving_pool(&held, &e), TN_SERVING_NOTHING);
    e.bytes = 32 << 20;
    ck_assert_int_eq(tn_serving_pool(&held, &e), TN_SERVING_POOL);
    e.kind = TN_CHARGE_GRAPH_MEMORY;
    e.bytes = 64 << 20;
    ck_assert_int_eq(tn_serving_pool(&held, &e), TN_SERVING_GRAPH);
    e.kind = TN_CHARGE_READING;
    e.bytes = 96 << 20;
    ck_assert_int_eq(tn_serving_pool(&held, &e), TN_SERVING_NOTHING);
}
END_TEST

START_TEST(counts)
{
    tn_serving_counts c = {0};
    tn_event granted = alloc(TN_KIND_DEVICE, 100, 0), refused = alloc(TN_KIND_DEVICE, 1000, 2);
    tn_serving_add(&c, TN_SERVING_ALLOCATION, &refused, 1);
    tn_serving_add(&c, TN_SERVING_RETRY, &granted, 0);
    tn_serving_add(&c, TN_SERVING_ALLOCATION, &granted, 0);
    tn_serving_add(&c, TN_SERVING_GRAPH, &granted, 0);
    tn_serving_add(&c, TN_SERVING_CHARGE, &granted, 0);
    tn_serving_add(&c, TN_SERVING_POOL, &granted, 0);
    tn_serving_add(&c, TN_SERVING_NOTHING, &granted, 1);
    ck_assert_uint_eq(c.driver_allocations, 2);
    ck_assert_uint_eq(c.first_uses, 1);
    ck_assert_uint_eq(c.retries, 1);
    ck_assert_uint_eq(c.refused, 1);
    ck_assert_uint_eq(c.requested_bytes, 200);
    ck_assert_uint_eq(c.graph_growths, 1);
    ck_assert_uint_eq(c.charge_growths, 1);
    ck_assert_uint_eq(c.pool_growths, 1);
    ck_assert_uint_eq(c.served_allocations, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("serving");
    TCase *cases = tcase_create("serving");
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, kinds_that_take_memory);
    tcase_add_test(cases, what_a_tier_serves_is_no_allocation_of_the_driver);
    tcase_add_test(cases, a_ladder_is_one_allocation);
    tcase_add_test(cases, no_retry);
    tcase_add_test(cases, growth_that_no_call_asked_for);
    tcase_add_test(cases, growth_of_pools);
    tcase_add_test(cases, counts);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
