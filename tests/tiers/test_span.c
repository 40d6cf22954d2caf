/* What spans say of themselves. That no other code can make a stable one is test_span_compile.sh's. */
#include "fixture.h"
#include "tiers/span_make.h"

START_TEST(an_empty_span_has_no_address_and_no_bytes)
{
    tn_stable_span none = tn_stable_none();
    ck_assert_ptr_null(tn_stable_data(none));
    ck_assert_uint_eq(tn_stable_bytes(none), 0);
    ck_assert_ptr_null(tn_stable_widen(none).data);
}
END_TEST

START_TEST(widening_keeps_address_and_size)
{
    char memory[48];
    tn_stable_span stable = tn_stable_make(memory, sizeof memory);
    tn_device_span span = tn_stable_widen(stable);
    ck_assert_ptr_eq(span.data, memory);
    ck_assert_uint_eq(span.bytes, sizeof memory);
    ck_assert_ptr_eq(tn_stable_data(stable), memory);
    ck_assert_uint_eq(tn_stable_bytes(stable), sizeof memory);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("span");
    tcase_add_test(tests, an_empty_span_has_no_address_and_no_bytes);
    tcase_add_test(tests, widening_keeps_address_and_size);
    return fixture_run("span", tests);
}
