/* The seam: empty, filled by a shared object that exports its symbol, and not filled by one of another version. Arguments: the three objects. */
#include <dlfcn.h>
#include <string.h>

#include "fixture.h"
#include "seam_stand_in.h"
#include "tiers/seam.h"

static const char *good_object, *newer_object, *shorter_object;
static tn_host *host;
static tn_backend *backend;

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 64 * MIB});
    backend = tn_host_backend(host);
}

static seam_account *load(const char *path)
{
    seam_account *(*give)(void);
    void *object = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    ck_assert_msg(object != NULL, "%s", dlerror());
    void *found = dlsym(object, "seam_stand_in_account");
    ck_assert_ptr_nonnull(found);
    memcpy(&give, &found, sizeof give);
    seam_account *account = give();
    account->limit = SIZE_MAX;
    return account;
}

static seam_account *load_and_find(void)
{
    seam_account *account = load(good_object);
    ck_assert_int_eq(tn_seam_find(), TN_SEAM_FILLED);
    ck_assert_uint_eq(account->found, 1);
    return account;
}

/* The listener's account is the backend's own. */
static void check_account(const seam_account *account)
{
    tn_backend_stats stats;
    tn_backend_read_stats(backend, &stats);
    ck_assert_uint_eq(account->live, stats.live);
    ck_assert_uint_eq(account->reserved, stats.reserved);
    ck_assert_uint_eq(account->regions, stats.acquires - stats.releases);
    ck_assert_uint_eq(account->acquired, stats.acquires);
    ck_assert_uint_eq(account->wrong, 0);
}

/* Some of everything, with the account looked at after each step where there is one. */
static void use_everything(const seam_account *account)
{
    tn_region region, copy;
    tn_arena *arena = NULL;
    tn_stable_span span;
#define STEP(call)                  \
    do {                            \
        expect_ok(call);            \
        if (account != NULL)        \
            check_account(account); \
    } while (0)
    STEP(tn_backend_acquire_growable(backend, 32 * MIB, 2 * MIB, 0, "kv", &region));
    STEP(tn_backend_commit(backend, &region, 20 * MIB));
    STEP(tn_backend_decommit(backend, &region, 4 * MIB));
    copy = region;
    STEP(tn_backend_release(backend, &region));
    expect_error(TN_MEM_E_STALE, tn_backend_release(backend, &copy));
    STEP(tn_arena_create(&(tn_arena_options){.backend = backend, .tag = "weights", .first_bytes = MIB, .max_regions = 4}, &arena));
    for (int i = 0; i < 12; i++)
        STEP(tn_arena_take(arena, 100 * KIB, 0, &span));
    if (account != NULL)
        ck_assert_uint_eq(account->block_bytes, 1200 * KIB);
    STEP(tn_arena_free(arena, tn_stable_data(span)));
    expect_error(TN_MEM_E_STALE, tn_arena_free(arena, tn_stable_data(span)));
    if (account != NULL)
        ck_assert_uint_eq(account->block_bytes, 1100 * KIB);
    STEP(tn_arena_take(arena, 100 * KIB, 0, &span));
    STEP(tn_arena_reset(arena));
    if (account != NULL)
        ck_assert_uint_eq(account->block_bytes, 0);
    STEP(tn_arena_take(arena, 64, 0, &span));
    STEP(tn_arena_destroy(&arena));
    if (account != NULL)
        ck_assert_uint_eq(account->block_bytes + account->live, 0);
#undef STEP
}

START_TEST(nobody_there_is_no_error)
{
    ck_assert_int_eq(tn_seam_find(), TN_SEAM_ABSENT);
    ck_assert_ptr_null(dlerror());
    use_everything(NULL);
    fixture_finish(host);
}
END_TEST

START_TEST(a_listener_hears_of_everything)
{
    seam_account *account = load_and_find();
    use_everything(account);
    ck_assert_uint_gt(account->handed_out, 13);
    ck_assert_uint_gt(account->asked, account->acquired); /* commits too */
    fixture_finish(host);
}
END_TEST

START_TEST(what_was_refused_is_not_heard_of)
{
    seam_account *account = load_and_find();
    tn_region region;
    account->limit = 4 * MIB;
    expect_error(TN_MEM_E_BUDGET, tn_backend_acquire(backend, MIB, 0, "refused", &region));
    expect_error(TN_MEM_E_BUDGET, tn_backend_acquire(backend, 5 * MIB, 0, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(backend, 0, 0, "t", &region));
    ck_assert_uint_eq(account->asked, 2);
    tn_host_fail(host, TN_HOST_ACQUIRE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(backend, MIB, 0, "t", &region));
    check_account(account);
    expect_ok(tn_backend_acquire_growable(backend, 32 * MIB, 2 * MIB, 0, "t", &region));
    expect_error(TN_MEM_E_BUDGET, tn_backend_commit(backend, &region, 8 * MIB));
    check_account(account);
    tn_host_fail(host, TN_HOST_DECOMMIT, 1);
    expect_error(TN_MEM_E_DRIVER, tn_backend_decommit(backend, &region, 0));
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_backend_release(backend, &region));
    ck_assert_uint_eq(account->kept, 1);
    check_account(account);
    expect_ok(tn_backend_release(backend, &region));
    check_account(account);
    fixture_finish(host);
}
END_TEST

static tn_mem_error never(void *self, const char *tag, size_t bytes)
{
    (void)self;
    (void)tag;
    (void)bytes;
    return TN_MEM_E_BUDGET;
}

START_TEST(the_backends_own_guard_is_asked_first)
{
    seam_account *account = load_and_find();
    tn_backend guarded;
    tn_region region;
    expect_ok(tn_backend_init(&guarded, &tn_host_table, host, &(tn_backend_guard){.may_acquire = never}));
    expect_error(TN_MEM_E_BUDGET, tn_backend_acquire(&guarded, MIB, 0, "t", &region));
    ck_assert_uint_eq(account->asked, 0);
    fixture_finish(host);
}
END_TEST

START_TEST(another_version_is_not_believed)
{
    seam_account *account = load(newer_object);
    ck_assert_int_eq(tn_seam_find(), TN_SEAM_REFUSED);
    ck_assert_uint_eq(account->found, 1);
    use_everything(NULL);
    ck_assert_uint_eq(account->asked + account->acquired + account->handed_out, 0);
    fixture_finish(host);
}
END_TEST

START_TEST(too_short_a_table_is_not_believed)
{
    seam_account *account = load(shorter_object);
    ck_assert_int_eq(tn_seam_find(), TN_SEAM_REFUSED);
    use_everything(NULL);
    ck_assert_uint_eq(account->asked + account->acquired + account->handed_out, 0);
    fixture_finish(host);
}
END_TEST

START_TEST(one_that_gives_no_table_is_as_good_as_absent)
{
    seam_account *account = load(good_object);
    account->mute = true;
    ck_assert_int_eq(tn_seam_find(), TN_SEAM_ABSENT);
    ck_assert_uint_eq(account->found, 1);
    use_everything(NULL);
    ck_assert_uint_eq(account->acquired, 0);
    fixture_finish(host);
}
END_TEST

START_TEST(a_table_is_whole_or_refused_and_can_be_taken_away)
{
    seam_account *account = load_and_find();
    const tn_seam *(*give)(void);
    void *found = dlsym(RTLD_DEFAULT, TN_SEAM_SYMBOL);
    memcpy(&give, &found, sizeof give);
    const tn_seam good = *give();
    /* Each function in turn is missing: they are all behind `self`. */
    for (size_t at = offsetof(tn_seam, may_acquire); at < sizeof good; at += sizeof(void *)) {
        tn_seam holed = good;
        memset((char *)&holed + at, 0, sizeof(void *));
        expect_error(TN_MEM_E_ARGUMENT, tn_seam_set(&holed));
    }
    tn_seam longer = good;
    longer.bytes += 64; /* of a later listener, whose table begins as ours */
    expect_ok(tn_seam_set(&longer));
    expect_ok(tn_seam_set(NULL));
    use_everything(NULL);
    ck_assert_uint_eq(account->acquired, 0);
    fixture_finish(host);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    good_object = argv[1];
    newer_object = argv[2];
    shorter_object = argv[3];
    TCase *tests = tcase_create("seam");
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, nobody_there_is_no_error);
    tcase_add_test(tests, a_listener_hears_of_everything);
    tcase_add_test(tests, what_was_refused_is_not_heard_of);
    tcase_add_test(tests, the_backends_own_guard_is_asked_first);
    tcase_add_test(tests, another_version_is_not_believed);
    tcase_add_test(tests, too_short_a_table_is_not_believed);
    tcase_add_test(tests, one_that_gives_no_table_is_as_good_as_absent);
    tcase_add_test(tests, a_table_is_whole_or_refused_and_can_be_taken_away);
    return fixture_run("seam", tests);
}
