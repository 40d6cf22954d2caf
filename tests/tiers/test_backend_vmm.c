/* Memory that grows in place, beyond what every backend holds: sizes of chunks, hysteresis, peers, fallback, what the driver does not take back. */
#include <pthread.h>
#include <string.h>

#include "fault_cuda.h"
#include "fixture.h"
#include "stand_in_cuda.h"

enum { REFUSED_MEMORY = 2, REFUSED_FOREVER = 719, NOT_PERMITTED = 800, NOT_SUPPORTED = 801 };

static tn_cuda table;
static tn_vmm *vmm;
static tn_backend *backend;

static void begin(void)
{
    stand_in_start(GIB);
    table = *fault_cuda(stand_in_cuda());
    vmm = NULL;
}

static void open_with(tn_vmm_options options)
{
    options.cuda = &table;
    expect_ok(tn_vmm_create(&options, &vmm));
    backend = tn_vmm_backend(vmm);
}

static void open_at_once(void)
{
    open_with((tn_vmm_options){.chunk = 4 * MIB, .patience = 1});
}

static void end(void)
{
    ck_assert_uint_eq(tn_vmm_destroy(vmm), 0);
    ck_assert_uint_eq(stand_in_physical(), 0);
    ck_assert_uint_eq(stand_in_reserved(), 0);
}

static tn_vmm_figures figures_now(void)
{
    tn_vmm_figures figures;
    tn_vmm_read_figures(vmm, &figures);
    return figures;
}

static tn_region grown(size_t reserve, size_t initial)
{
    tn_region region;
    expect_ok(tn_backend_acquire_growable(backend, reserve, initial, 0, "kv", &region));
    return region;
}

START_TEST(a_chunk_is_256_mib_and_a_multiple_of_the_granularity)
{
    open_with((tn_vmm_options){0});
    ck_assert_uint_eq(figures_now().chunk, 256 * MIB);
    ck_assert_uint_eq(figures_now().granularity, STAND_IN_PAGE);
    tn_region region = grown(GIB / 2, 1);
    ck_assert_uint_eq(region.committed, 256 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    tn_vmm *other = NULL;
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_create(&(tn_vmm_options){.cuda = &table, .chunk = 3 * MIB}, &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_create(&(tn_vmm_options){.cuda = &table, .peer_count = 1}, &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_create(&(tn_vmm_options){.cuda = &table, .peers = (int[]){0}, .peer_count = 1}, &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_create(&(tn_vmm_options){.cuda = &table, .peers = (int[]){1, 1}, .peer_count = 2}, &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_create(&(tn_vmm_options){0}, &other));
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_create(NULL, &other));
    ck_assert_ptr_null(other);
    end();
}
END_TEST

START_TEST(the_last_chunk_ends_where_the_range_does)
{
    open_at_once();
    tn_region region = grown(9 * MIB, 0);
    ck_assert_uint_eq(region.reserved, 10 * MIB);
    expect_ok(tn_backend_commit(backend, &region, 8 * MIB + 1));
    ck_assert_uint_eq(region.committed, 10 * MIB);
    ck_assert_uint_eq(stand_in_physical(), 10 * MIB);
    memset(region.base, 7, region.committed);
    expect_ok(tn_backend_decommit(backend, &region, 8 * MIB));
    ck_assert_uint_eq(stand_in_physical(), 8 * MIB);
    expect_ok(tn_backend_decommit(backend, &region, 1));
    ck_assert_uint_eq(region.committed, 4 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    /* What does not grow is one handle, however large. */
    uint64_t before = fault_count(TN_CUDA_CREATE);
    expect_ok(tn_backend_acquire(backend, 99 * MIB, 0, "fixed", &region));
    ck_assert_uint_eq(fault_count(TN_CUDA_CREATE), before + 1);
    ck_assert_uint_eq(stand_in_physical(), 100 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    end();
}
END_TEST

START_TEST(a_surplus_goes_when_it_lasts)
{
    open_with((tn_vmm_options){.chunk = 2 * MIB, .patience = 4});
    tn_region region = grown(40 * MIB, 20 * MIB);
    size_t wanted[] = {4 * MIB, 10 * MIB, 2 * MIB};
    for (int i = 0; i < 3; i++) {
        expect_ok(tn_backend_decommit(backend, &region, wanted[i]));
        ck_assert_uint_eq(region.committed, 20 * MIB);
    }
    expect_ok(tn_backend_decommit(backend, &region, 6 * MIB)); /* the fourth: down to what all four allow */
    ck_assert_uint_eq(region.committed, 10 * MIB);
    ck_assert_uint_eq(stand_in_physical(), 10 * MIB);
    for (int i = 0; i < 3; i++)
        expect_ok(tn_backend_decommit(backend, &region, 2 * MIB));
    expect_ok(tn_backend_commit(backend, &region, 12 * MIB)); /* growth between them: it starts again */
    for (int i = 0; i < 3; i++)
        expect_ok(tn_backend_decommit(backend, &region, 2 * MIB));
    ck_assert_uint_eq(region.committed, 12 * MIB);
    expect_ok(tn_backend_decommit(backend, &region, 2 * MIB));
    ck_assert_uint_eq(region.committed, 2 * MIB);
    tn_backend_stats stats;
    tn_backend_read_stats(backend, &stats);
    ck_assert_uint_eq(stats.live, 2 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    end();
}
END_TEST

START_TEST(flapping_by_a_chunk_costs_no_driver_call_until_patience_ends)
{
    open_with((tn_vmm_options){.chunk = 2 * MIB});
    tn_region region = grown(40 * MIB, 20 * MIB);
    uint64_t unmaps = fault_count(TN_CUDA_UNMAP), creates = fault_count(TN_CUDA_CREATE);
    for (unsigned i = 0; i < TN_VMM_PATIENCE_DEFAULT - 1; i++) {
        expect_ok(tn_backend_decommit(backend, &region, (i % 2 == 0 ? 18 : 16) * MIB));
        expect_ok(tn_backend_commit(backend, &region, 20 * MIB));
    }
    ck_assert_uint_eq(fault_count(TN_CUDA_UNMAP), unmaps);
    ck_assert_uint_eq(fault_count(TN_CUDA_CREATE), creates);
    expect_ok(tn_backend_decommit(backend, &region, 2 * MIB)); /* the last of the window, in which 20 were needed again and again */
    ck_assert_uint_eq(region.committed, 20 * MIB);
    /* A need below what the decommits ask for raises nothing, and a commit before the first of them belongs to no window. */
    for (unsigned i = 0; i < TN_VMM_PATIENCE_DEFAULT; i++) {
        expect_ok(tn_backend_commit(backend, &region, i == 0 ? 20 * MIB : 5 * MIB));
        expect_ok(tn_backend_decommit(backend, &region, i == 7 ? 8 * MIB : 2 * MIB));
    }
    ck_assert_uint_eq(region.committed, 8 * MIB);
    for (unsigned i = 0; i < TN_VMM_PATIENCE_DEFAULT; i++) {
        expect_ok(tn_backend_decommit(backend, &region, 2 * MIB));
        if (i == 3)
            expect_ok(tn_backend_commit(backend, &region, 5 * MIB));
    }
    ck_assert_uint_eq(region.committed, 6 * MIB);
    tn_region copy = region;
    expect_ok(tn_backend_release(backend, &region));
    expect_error(TN_MEM_E_STALE, tn_backend_commit(backend, &copy, 1));
    end();
}
END_TEST

/* The guard hears what will be committed, not what was asked for. */
typedef struct heard {
    size_t bytes[8];
    size_t count;
} heard;

static tn_mem_error hear(void *self, const char *tag, size_t bytes)
{
    heard *h = self;
    ck_assert_str_eq(tag, "kv");
    ck_assert_uint_lt(h->count, 8);
    h->bytes[h->count++] = bytes;
    return TN_MEM_OK;
}

START_TEST(the_guard_is_asked_for_whole_chunks)
{
    heard h = {.count = 0};
    open_with((tn_vmm_options){.chunk = 4 * MIB, .patience = 1});
    backend->guard = (tn_backend_guard){hear, &h};
    tn_region region, fixed;
    expect_ok(tn_backend_acquire_growable(backend, 9 * MIB, 1, 0, "kv", &region)); /* 10 in all: 4, 4, 2 */
    ck_assert_uint_eq(h.bytes[0], region.committed);
    expect_ok(tn_backend_commit(backend, &region, 4 * MIB + 1));
    ck_assert_uint_eq(h.bytes[1], 4 * MIB);
    ck_assert_uint_eq(region.committed, 8 * MIB);
    expect_ok(tn_backend_commit(backend, &region, 8 * MIB + 1));
    ck_assert_uint_eq(h.bytes[2], 2 * MIB);
    ck_assert_uint_eq(region.committed, 10 * MIB);
    expect_ok(tn_backend_acquire(backend, 3 * MIB, 0, "kv", &fixed));
    ck_assert_uint_eq(h.bytes[3], 4 * MIB);
    ck_assert_uint_eq(fixed.committed, 4 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    expect_ok(tn_backend_release(backend, &fixed));
    expect_ok(tn_backend_acquire_growable(backend, 3 * MIB, 0, 0, "kv", &region)); /* nothing yet, and a chunk is no more than it all */
    ck_assert_uint_eq(h.bytes[4], 0);
    expect_ok(tn_backend_commit(backend, &region, 1));
    ck_assert_uint_eq(h.bytes[5], 4 * MIB);
    ck_assert_uint_eq(region.committed, 4 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    ck_assert_uint_eq(h.count, 6);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(backend, TN_BYTES_MAX, 0, "kv", &region));
    end();
}
END_TEST

START_TEST(a_decommit_that_the_driver_refused_is_followed_by_the_next)
{
    open_with((tn_vmm_options){.chunk = 2 * MIB, .patience = 2});
    tn_region region = grown(20 * MIB, 20 * MIB);
    expect_ok(tn_backend_decommit(backend, &region, 4 * MIB));
    fault_call(TN_CUDA_UNMAP, REFUSED_FOREVER);
    expect_error(TN_MEM_E_DRIVER, tn_backend_decommit(backend, &region, 4 * MIB));
    ck_assert_uint_eq(region.committed, 20 * MIB);
    ck_assert_int_eq(tn_vmm_failure(vmm).code, REFUSED_FOREVER);
    ck_assert_int_eq((int)tn_vmm_failure(vmm).call, TN_CUDA_UNMAP);
    fault_call(TN_CUDA_UNMAP, 0);
    expect_ok(tn_backend_decommit(backend, &region, 4 * MIB));
    ck_assert_uint_eq(region.committed, 4 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    end();
}
END_TEST

static void check_reach(int device, const tn_region *region, bool reaches)
{
    for (size_t at = 0; at < region->committed; at += STAND_IN_PAGE)
        ck_assert_int_eq(stand_in_reaches(device, (uintptr_t)region->base + at), reaches);
}

START_TEST(peers_reach_what_is_there_and_what_comes)
{
    open_with((tn_vmm_options){.chunk = 2 * MIB, .patience = 1, .peers = (int[]){1}, .peer_count = 1});
    tn_region region = grown(20 * MIB, 4 * MIB), fixed, empty = grown(4 * MIB, 0);
    expect_ok(tn_backend_acquire(backend, 6 * MIB, 0, "fixed", &fixed));
    check_reach(0, &region, true);
    check_reach(1, &region, true);
    check_reach(2, &region, false);
    expect_ok(tn_vmm_enable_peer(vmm, 2));
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_enable_peer(vmm, 2));
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_enable_peer(vmm, 0));
    expect_ok(tn_backend_commit(backend, &region, 8 * MIB));
    check_reach(2, &region, true);
    check_reach(2, &fixed, true);
    expect_ok(tn_vmm_disable_peer(vmm, 1));
    expect_error(TN_MEM_E_ARGUMENT, tn_vmm_disable_peer(vmm, 1));
    expect_ok(tn_backend_commit(backend, &region, 10 * MIB));
    check_reach(0, &region, true);
    check_reach(1, &region, false);
    check_reach(2, &region, true);
    expect_ok(tn_backend_release(backend, &region));
    expect_ok(tn_backend_release(backend, &fixed));
    expect_ok(tn_backend_release(backend, &empty));
    end();
}
END_TEST

START_TEST(a_peer_reaches_all_regions_or_none)
{
    open_at_once();
    tn_region regions[3];
    for (int i = 0; i < 3; i++)
        regions[i] = grown(8 * MIB, 4 * MIB);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        fault_set(nth, REFUSED_FOREVER, false);
        expect_error(TN_MEM_E_DRIVER, tn_vmm_enable_peer(vmm, 1));
        for (int i = 0; i < 3; i++)
            check_reach(1, &regions[i], false);
    }
    expect_ok(tn_vmm_enable_peer(vmm, 1));
    for (uint64_t nth = 1; nth <= 3; nth++) {
        fault_set(nth, REFUSED_FOREVER, false);
        expect_error(TN_MEM_E_DRIVER, tn_vmm_disable_peer(vmm, 1));
        for (int i = 0; i < 3; i++)
            check_reach(1, &regions[i], true);
    }
    for (int i = 0; i < 3; i++)
        expect_ok(tn_backend_release(backend, &regions[i]));
    end();
}
END_TEST

/* Plain regions are served, none grows, and both are counted. */
static void check_fallback(bool from_the_start, tn_cuda_call call, int code)
{
    tn_region region = {0}, other;
    tn_vmm_figures figures = figures_now();
    uint64_t fallbacks = figures.fallbacks, refused = figures.growths_refused;
    ck_assert_int_eq(figures.refused, from_the_start);
    expect_ok(tn_backend_acquire(backend, 6 * MIB, 0, "weights", &region));
    ck_assert_uint_eq(region.committed, 6 * MIB);
    ck_assert_uint_eq(stand_in_physical(), 6 * MIB);
    ck_assert_uint_eq(stand_in_reserved(), 0);
    memset(region.base, 1, region.committed);
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_backend_acquire_growable(backend, 6 * MIB, MIB, 0, "kv", &other));
    ck_assert_ptr_null(other.base);
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_backend_decommit(backend, &region, MIB));
    figures = figures_now();
    ck_assert_uint_eq(figures.fallbacks, fallbacks + 1);
    ck_assert_uint_eq(figures.growths_refused, refused + 1);
    ck_assert_int_eq((int)figures.refusal.call, (int)call);
    ck_assert_int_eq(figures.refusal.code, code);
    expect_ok(tn_backend_release(backend, &region));
}

START_TEST(a_device_without_it_falls_back_and_says_so)
{
    stand_in_has_vmm(false);
    open_at_once();
    check_fallback(true, TN_CUDA_ATTRIBUTE, 0);
    end();
    begin();
    stand_in_has_vmm(false);
    table.attribute = NULL; /* cannot be asked: what then refuses is the granularity */
    open_at_once();
    check_fallback(true, TN_CUDA_GRANULARITY, NOT_SUPPORTED);
    end();
    begin();
    fault_call(TN_CUDA_ATTRIBUTE, NOT_SUPPORTED);
    open_at_once();
    check_fallback(true, TN_CUDA_ATTRIBUTE, NOT_SUPPORTED);
    fault_call(TN_CUDA_ATTRIBUTE, 0);
    end();
    begin();
    table.map = NULL;
    open_at_once();
    check_fallback(true, TN_CUDA_MAP, 0);
    end();
}
END_TEST

START_TEST(a_call_that_is_not_supported_falls_back_and_says_so)
{
    static const tn_cuda_call calls[] = {TN_CUDA_RESERVE, TN_CUDA_CREATE, TN_CUDA_MAP, TN_CUDA_ACCESS};
    open_at_once();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int code = i % 2 == 0 ? NOT_SUPPORTED : NOT_PERMITTED;
        fault_call(calls[i], code);
        check_fallback(false, calls[i], code);
        fault_call(calls[i], 0);
        tn_region region = grown(8 * MIB, 4 * MIB); /* a refusal is not for ever */
        expect_ok(tn_backend_release(backend, &region));
    }
    end();
}
END_TEST

START_TEST(want_of_memory_is_no_reason_to_fall_back)
{
    open_at_once();
    tn_region region;
    fault_call(TN_CUDA_CREATE, REFUSED_MEMORY);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(backend, MIB, 0, "t", &region));
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire_growable(backend, MIB, 1, 0, "t", &region));
    ck_assert_uint_eq(figures_now().fallbacks, 0);
    ck_assert_uint_eq(figures_now().growths_refused, 0);
    fault_call(TN_CUDA_CREATE, 0);
    end();
}
END_TEST

START_TEST(what_the_driver_does_not_take_back_is_counted_and_tried_again)
{
    open_at_once();
    tn_region region = grown(16 * MIB, 16 * MIB), other;
    fault_call(TN_CUDA_RELEASE, REFUSED_FOREVER);
    expect_ok(tn_backend_decommit(backend, &region, 4 * MIB));
    ck_assert_uint_eq(figures_now().held, 12 * MIB);
    ck_assert_uint_eq(stand_in_physical(), 16 * MIB);
    expect_error(TN_MEM_E_DRIVER, tn_backend_commit(backend, &region, 8 * MIB));
    ck_assert_uint_eq(region.committed, 4 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    ck_assert_uint_eq(figures_now().held, 16 * MIB);
    ck_assert_uint_gt(stand_in_reserved(), 0);
    fault_call(TN_CUDA_RELEASE, 0);
    fault_call(TN_CUDA_UNRESERVE, REFUSED_FOREVER);
    other = grown(4 * MIB, 4 * MIB); /* tries again first */
    ck_assert_uint_eq(figures_now().held, 0);
    ck_assert_uint_eq(stand_in_physical(), 4 * MIB);
    ck_assert_uint_eq(stand_in_reserved(), 20 * MIB);
    fault_call(TN_CUDA_UNRESERVE, 0);
    expect_ok(tn_backend_release(backend, &other));
    ck_assert_uint_eq(stand_in_reserved(), 0);
    end();
}
END_TEST

START_TEST(an_end_gives_back_what_is_still_live)
{
    open_at_once();
    tn_region region = grown(16 * MIB, 8 * MIB), fixed;
    expect_ok(tn_backend_acquire(backend, MIB, 0, "t", &fixed));
    fault_call(TN_CUDA_MAP, NOT_SUPPORTED);
    expect_ok(tn_backend_acquire(backend, MIB, 0, "plain", &fixed));
    fault_call(TN_CUDA_MAP, 0);
    ck_assert_ptr_nonnull(region.base);
    ck_assert_uint_eq(tn_vmm_destroy(vmm), 3);
    ck_assert_uint_eq(stand_in_physical(), 0);
    ck_assert_uint_eq(stand_in_reserved(), 0);
    ck_assert_uint_eq(tn_vmm_destroy(NULL), 0);
}
END_TEST

typedef struct meagre {
    uint64_t left; /* calls until one fails */
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
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        m.left = nth;
        tn_region region = {0};
        tn_mem_error error = tn_vmm_create(&(tn_vmm_options){.cuda = &table, .chunk = 2 * MIB, .metadata = &metadata}, &vmm);
        if (error == TN_MEM_OK) {
            backend = tn_vmm_backend(vmm);
            error = tn_backend_acquire_growable(backend, 200 * MIB, 2 * MIB, 0, "kv", &region);
            if (error == TN_MEM_OK) {
                error = tn_backend_commit(backend, &region, 200 * MIB);
                ck_assert_uint_eq(region.committed, error == TN_MEM_OK ? 200 * MIB : 2 * MIB);
                ck_assert_uint_eq(stand_in_physical(), region.committed);
                expect_ok(tn_backend_release(backend, &region));
            }
            ck_assert_uint_eq(stand_in_physical(), 0);
            ck_assert_uint_eq(stand_in_reserved(), 0);
            ck_assert_uint_eq(tn_vmm_destroy(vmm), 0);
        }
        failed = error != TN_MEM_OK;
        if (failed)
            ck_assert_int_eq(error, TN_MEM_E_HOST_MEMORY);
        ck_assert_uint_eq(m.live, 0);
        ck_assert_uint_lt(nth, 50);
    }
}
END_TEST

static void *work(void *seed)
{
    random_state random = {(uint64_t)(uintptr_t)seed};
    for (int i = 0; i < 300; i++) {
        tn_region region;
        if (tn_backend_acquire_growable(backend, 16 * MIB, 2 * MIB, 0, "kv", &region) != TN_MEM_OK)
            continue; /* the card is full at times */
        memset(region.base, (int)i, 64);
        if (tn_backend_commit(backend, &region, (2 + random_below(&random, 14)) * MIB) == TN_MEM_OK)
            (void)!tn_backend_decommit(backend, &region, random_below(&random, 2 * MIB));
        tn_region copy = region;
        if (tn_backend_release(backend, &region) != TN_MEM_OK || tn_backend_release(backend, &copy) != TN_MEM_E_STALE)
            return "a release went wrong";
    }
    return NULL;
}

START_TEST(threads_work_on_regions_of_their_own)
{
    pthread_t threads[4];
    open_with((tn_vmm_options){.chunk = 2 * MIB, .patience = 2});
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    tn_backend_stats stats;
    tn_backend_read_stats(backend, &stats);
    ck_assert_uint_eq(stats.live, 0);
    ck_assert_uint_eq(stats.acquires, stats.releases);
    end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("backend_vmm");
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, a_chunk_is_256_mib_and_a_multiple_of_the_granularity);
    tcase_add_test(tests, the_last_chunk_ends_where_the_range_does);
    tcase_add_test(tests, a_surplus_goes_when_it_lasts);
    tcase_add_test(tests, flapping_by_a_chunk_costs_no_driver_call_until_patience_ends);
    tcase_add_test(tests, the_guard_is_asked_for_whole_chunks);
    tcase_add_test(tests, a_decommit_that_the_driver_refused_is_followed_by_the_next);
    tcase_add_test(tests, peers_reach_what_is_there_and_what_comes);
    tcase_add_test(tests, a_peer_reaches_all_regions_or_none);
    tcase_add_test(tests, a_device_without_it_falls_back_and_says_so);
    tcase_add_test(tests, a_call_that_is_not_supported_falls_back_and_says_so);
    tcase_add_test(tests, want_of_memory_is_no_reason_to_fall_back);
    tcase_add_test(tests, what_the_driver_does_not_take_back_is_counted_and_tried_again);
    tcase_add_test(tests, an_end_gives_back_what_is_still_live);
    tcase_add_test(tests, without_host_memory_nothing_changes);
    tcase_add_test(tests, threads_work_on_regions_of_their_own);
    return fixture_run("backend_vmm", tests);
}
