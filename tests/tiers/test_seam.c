/* The seam: empty, filled by a shared object that exports its symbol, and not filled by one of another version. Arguments: the three objects. */
#include <dlfcn.h>
#include <string.h>

#include "fixture.h"
#include "seam_stand_in.h"
#include "tiers/block_pool.h"
#include "tiers/packed.h"
#include "tiers/pinned_slabs.h"
#include "tiers/scratch.h"
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

START_TEST(a_stack_tells_of_takes_frees_and_rewinds)
{
    seam_account *account = load_and_find();
    tn_scratch *scratch = NULL;
    tn_scratch_mark mark;
    tn_stable_span spans[4];
    expect_ok(tn_scratch_create(&(tn_scratch_options){.backend = backend, .tag = "scratch", .capacity = MIB}, &scratch));
    expect_ok(tn_scratch_take(scratch, 1000, 0, &spans[0]));
    expect_ok(tn_scratch_open_mark(scratch, &mark));
    for (int i = 1; i < 4; i++)
        expect_ok(tn_scratch_take(scratch, 1000, 0, &spans[i]));
    ck_assert_uint_eq(account->block_bytes, 4000);
    expect_ok(tn_scratch_free(scratch, tn_stable_data(spans[2]))); /* a tombstone */
    ck_assert_uint_eq(account->block_bytes, 3000);
    expect_error(TN_MEM_E_STALE, tn_scratch_free(scratch, tn_stable_data(spans[2])));
    expect_ok(tn_scratch_free(scratch, tn_stable_data(spans[3])));
    ck_assert_uint_eq(account->block_bytes, 2000);
    expect_ok(tn_scratch_rewind(scratch, mark));
    ck_assert_uint_eq(account->block_bytes, 1000);
    tn_scratch_reset(scratch);
    ck_assert_uint_eq(account->block_bytes, 0);
    expect_ok(tn_scratch_take(scratch, 1000, 0, &spans[0]));
    expect_ok(tn_scratch_destroy(&scratch));
    ck_assert_uint_eq(account->block_bytes, 0);
    check_account(account);
    fixture_finish(host);
}
END_TEST

START_TEST(a_pool_tells_of_a_blocks_first_owner_and_its_last)
{
    seam_account *account = load_and_find();
    tn_block_pool *pool = NULL;
    tn_block a = tn_block_none(), b = tn_block_none(), c = tn_block_none();
    tn_block_pool_options options = {.backend = backend, .tag = "kv", .blocks = 8, .stride = 4 * KIB, .max_shares = 4};
    expect_ok(tn_block_pool_create(&options, &pool));
    expect_ok(tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &a));
    expect_ok(tn_block_pool_share(pool, &a, &b));
    expect_ok(tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &c));
    ck_assert_uint_eq(account->block_bytes, 8 * KIB);
    expect_ok(tn_block_pool_release(pool, &a, NULL, 0));
    ck_assert_uint_eq(account->block_bytes, 8 * KIB);
    expect_ok(tn_block_pool_release(pool, &b, NULL, 0));
    ck_assert_uint_eq(account->block_bytes, 4 * KIB);
    expect_ok(tn_block_pool_reset(pool, NULL, 0));
    ck_assert_uint_eq(account->block_bytes, 0);
    expect_ok(tn_block_pool_destroy(&pool));
    /* Slots have no addresses, so there is nothing to tell. */
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.blocks = 8}, &pool));
    size_t before = account->handed_out;
    expect_ok(tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &a));
    expect_ok(tn_block_pool_release(pool, &a, NULL, 0));
    expect_ok(tn_block_pool_destroy(&pool));
    ck_assert_uint_eq(account->handed_out, before);
    check_account(account);
    fixture_finish(host);
}
END_TEST

static bool always_done(void *self, tn_work_mark mark)
{
    (void)self;
    (void)mark;
    return true;
}

static tn_work_mark no_work(void *self)
{
    (void)self;
    return (tn_work_mark){TN_WORK_NO_QUEUE, 0};
}

START_TEST(packed_slots_and_pinned_slabs_tell_too)
{
    static const tn_work_table idle = {.done = always_done, .all = no_work};
    static const tn_packed_slot slots[] = {{.bytes = 4 * KIB}, {.site = 1, .offset = 2 * KIB, .bytes = 2 * KIB}};
    const tn_packed_plan plan = {slots, 2, 2, 4 * KIB};
    seam_account *account = load_and_find();
    tn_packed *packed = NULL;
    tn_stable_span span, second;
    tn_packed_options options = {.backend = backend, .tag = "packed", .plan = &plan, .work = {&idle, NULL}};
    expect_ok(tn_packed_create(&options, &packed));
    expect_ok(tn_packed_take(packed, 0, 3 * KIB, TN_WORK_NO_QUEUE, &span, NULL));
    ck_assert_uint_eq(account->block_bytes, 3 * KIB);
    expect_error(TN_MEM_E_DIVERGED, tn_packed_take(packed, 1, KIB, TN_WORK_NO_QUEUE, &second, NULL));
    expect_ok(tn_packed_free(packed, tn_stable_data(span), NULL));
    ck_assert_uint_eq(account->block_bytes, 0);
    expect_ok(tn_packed_take(packed, 1, KIB, TN_WORK_NO_QUEUE, &second, NULL));
    expect_ok(tn_packed_destroy(&packed));
    ck_assert_uint_eq(account->block_bytes, 0);

    tn_pinned_slabs *slabs = NULL;
    tn_pinned_block block;
    tn_pinned_slabs_options pinned = {.backends = {backend}, .tag = "pinned", .slab_bytes = MIB, .max_slabs = 1};
    expect_ok(tn_pinned_slabs_create(&pinned, &slabs));
    expect_ok(tn_pinned_slabs_take(slabs, 0, 100, 0, &block));
    ck_assert_uint_eq(account->block_bytes, 100);
    expect_ok(tn_pinned_slabs_give(slabs, &block, NULL, 0));
    ck_assert_uint_eq(account->block_bytes, 0);
    expect_ok(tn_pinned_slabs_destroy(&slabs));
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
    tcase_add_test(tests, a_stack_tells_of_takes_frees_and_rewinds);
    tcase_add_test(tests, a_pool_tells_of_a_blocks_first_owner_and_its_last);
    tcase_add_test(tests, packed_slots_and_pinned_slabs_tell_too);
    tcase_add_test(tests, the_backends_own_guard_is_asked_first);
    tcase_add_test(tests, another_version_is_not_believed);
    tcase_add_test(tests, too_short_a_table_is_not_believed);
    tcase_add_test(tests, one_that_gives_no_table_is_as_good_as_absent);
    tcase_add_test(tests, a_table_is_whole_or_refused_and_can_be_taken_away);
    return fixture_run("seam", tests);
}
