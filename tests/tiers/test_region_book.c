/* The book of a backend's regions: what is live is found by its id, one call at a time has it, and an old copy finds nothing. */
#include "fixture.h"
#include "tiers/metadata_use.h"
#include "tiers/region_book.h"

static tn_book book;

static void begin(void)
{
    tn_book_init(&book, tn_metadata_or_malloc(NULL));
}

static void end(void)
{
    tn_book_end(&book);
}

static uint64_t open_entry(void)
{
    uint64_t id = 0;
    expect_ok(tn_book_open(&book, &id));
    ck_assert_uint_ne(id, 0);
    return id;
}

static tn_region write_entry(uint64_t id)
{
    tn_book_entry entry = {.region = {.base = (char *)&book + id, .committed = id, .id = id}, .payload = &book};
    tn_book_write(&book, &entry);
    return entry.region;
}

START_TEST(what_is_not_live_is_passed_over)
{
    tn_book_entry entry = {0};
    ck_assert(!tn_book_next(&book, 0, &entry));
    uint64_t ids[5];
    for (int i = 0; i < 5; i++) {
        ids[i] = open_entry();
        ck_assert(i == 0 || ids[i] > ids[i - 1]);
    }
    ck_assert(!tn_book_next(&book, 0, &entry)); /* all open, none written */
    write_entry(ids[1]);
    write_entry(ids[4]);
    ck_assert(tn_book_next(&book, 0, &entry) && entry.region.id == ids[1] && entry.payload == &book);
    ck_assert(tn_book_next(&book, ids[1], &entry) && entry.region.id == ids[4]);
    ck_assert(!tn_book_next(&book, ids[4], &entry));
    ck_assert(tn_book_next(&book, ids[1] - 1, &entry) && entry.region.id == ids[1]);
    tn_book_remove(&book, ids[1]);
    ck_assert(tn_book_next(&book, 0, &entry) && entry.region.id == ids[4]);
    tn_book_remove(&book, ids[0]);
    tn_book_remove(&book, ids[4]);
    ck_assert_uint_eq(book.count, 2);
    ck_assert(!tn_book_next(&book, 0, &entry));
}
END_TEST

START_TEST(one_call_has_a_region_at_a_time)
{
    uint64_t first = open_entry(), second = open_entry();
    tn_region region = write_entry(second), other = region;
    tn_book_entry entry = {0};
    expect_error(TN_MEM_E_STALE, tn_book_claim(&book, &(tn_region){.base = &book, .id = first}, &entry)); /* not written yet */
    other.base = (char *)other.base + 1;
    expect_error(TN_MEM_E_ARGUMENT, tn_book_claim(&book, &other, &entry));
    other = region;
    other.id = second + 1;
    expect_error(TN_MEM_E_STALE, tn_book_claim(&book, &other, &entry));
    expect_ok(tn_book_claim(&book, &region, &entry));
    ck_assert(entry.region.id == second && entry.region.committed == region.committed);
    expect_error(TN_MEM_E_STALE, tn_book_claim(&book, &region, &entry));
    ck_assert(!tn_book_next(&book, 0, &entry));
    entry = (tn_book_entry){.region = region};
    tn_book_write(&book, &entry); /* given back */
    expect_ok(tn_book_claim(&book, &region, &entry));
    tn_book_remove(&book, second);
    expect_error(TN_MEM_E_STALE, tn_book_claim(&book, &region, &entry));
    tn_book_remove(&book, first);
    ck_assert_uint_gt(open_entry(), second); /* no id comes twice */
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("region_book");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, what_is_not_live_is_passed_over);
    tcase_add_test(tests, one_call_has_a_region_at_a_time);
    return fixture_run("region_book", tests);
}
