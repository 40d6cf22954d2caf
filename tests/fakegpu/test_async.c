/* Stream-ordered memory and pools. */
#include "test_driver.h"

static cuuint64_t attr(CUmemoryPool p, CUmemPool_attribute a)
{
    cuuint64_t v = 0;
    OK(cuMemPoolGetAttribute(p, a, &v));
    return v;
}

static CUmemoryPool default_pool(void)
{
    CUmemoryPool p;
    OK(cuDeviceGetDefaultMemPool(&p, 0));
    return p;
}

START_TEST(free_async_takes_a_plain_block_in_stream_order)
{
    CUdeviceptr p;
    start();
    CUstream s = new_stream();
    OK(cuMemAlloc(&p, 4096));
    hold(s);
    OK(cuMemFreeAsync(p, s));
    ck_assert(busy(s));
    ck_assert_uint_eq(type_of(p), CU_MEMORYTYPE_DEVICE); /* until the stream passes it */
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));       /* but it is freed once only */
    release();
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(type_of(p), 0);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}
END_TEST

START_TEST(free_async_refuses_managed_memory)
{
    CUdeviceptr p;
    start();
    CUstream s = new_stream();
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemFreeAsync(p, s));
    OK(cuMemFree(p));
}
END_TEST

START_TEST(the_used_figure_falls_at_the_call)
{
    CUdeviceptr p;
    start();
    CUstream s = new_stream();
    CUmemoryPool pool = default_pool();
    OK(cuMemAllocAsync(&p, 8 * MIB, s));
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 8 * MIB);
    hold(s);
    OK(cuMemFreeAsync(p, s));
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * MIB);
    ck_assert(busy(s));
}
END_TEST

START_TEST(the_used_figure_is_exact_and_keeps_what_a_plain_free_frees)
{
    CUdeviceptr p, q;
    cuuint64_t zero = 0;
    size_t mapped;
    start();
    CUstream s = new_stream();
    CUmemoryPool pool = default_pool();
    OK(cuMemAllocAsync(&p, 1000, s));
    OK(cuMemAllocAsync(&q, 1, s));
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1001);
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, q));
    ck_assert_uint_eq(mapped, 32 * MIB);
    OK(cuMemFreeAsync(p, s));
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1001);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1);
    OK(cuMemFree(q));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1);
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
}
END_TEST

START_TEST(idle_pool_bytes_come_back_after_a_synchronisation)
{
    CUdeviceptr p, q;
    cuuint64_t max = UINT64_MAX;
    start();
    CUstream s = new_stream();
    CUmemoryPool pool = default_pool();
    size_t total;
    OK(cuDeviceTotalMem(&total, 0));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &max));
    OK(cuMemAllocAsync(&p, total / 10 * 9, s));
    OK(cuMemFreeAsync(p, s));
    usleep(30000); /* the stream has passed the free; nobody has synchronised */
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, total / 2));
    ck_assert_uint_eq(q, 0);
    OK(cuStreamSynchronize(s));
    OK(cuMemAlloc(&q, total / 2));
}
END_TEST

START_TEST(pools_grow_and_shrink_in_steps_of_32_mib)
{
    CUdeviceptr a, b;
    start();
    CUstream s = new_stream();
    CUmemoryPool pool = default_pool();
    size_t before = free_bytes();
    OK(cuMemAllocAsync(&a, 512, s));
    ck_assert_uint_eq(before - free_bytes(), 32 * MIB);
    OK(cuMemAllocAsync(&b, 40 * MIB, s));
    ck_assert_uint_eq(before - free_bytes(), 64 * MIB); /* the rest of the first step serves too */
    OK(cuMemFreeAsync(b, s));
    OK(cuStreamSynchronize(s)); /* the second step is idle as a whole, the first is not */
    ck_assert_uint_eq(before - free_bytes(), 32 * MIB);
    OK(cuMemAllocAsync(&b, 40 * MIB, s));
    OK(cuMemsetD8Async(b, 1, 40 * MIB, s));
    ck_assert_uint_eq(before - free_bytes(), 64 * MIB);
    OK(cuMemFreeAsync(b, s));
    OK(cuMemFreeAsync(a, s));
    OK(cuStreamSynchronize(s)); /* threshold 0: everything idle goes back here */
    ck_assert_uint_eq(free_bytes(), before);
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 64 * MIB);
}
END_TEST

START_TEST(the_threshold_keeps_bytes_and_a_trim_takes_them)
{
    CUdeviceptr a;
    cuuint64_t keep = 64 * MIB;
    start();
    CUstream s = new_stream();
    CUmemoryPool pool = default_pool();
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    OK(cuMemAllocAsync(&a, 1000, s));
    OK(cuMemFreeAsync(a, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * MIB);
    OK(cuMemPoolTrimTo(pool, 0));
    ck_assert_uint_eq(attr(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
}
END_TEST

START_TEST(a_freed_block_serves_its_own_stream_at_once_and_another_later)
{
    CUdeviceptr a, b, c;
    start();
    CUstream s = new_stream(), other = new_stream();
    OK(cuMemAllocAsync(&a, MIB, s));
    hold(s);
    OK(cuMemFreeAsync(a, s));
    OK(cuMemAllocAsync(&b, MIB, other));
    ck_assert_uint_ne(a, b); /* the free has not been passed */
    OK(cuMemAllocAsync(&c, MIB, s));
    ck_assert_uint_eq(a, c);
    ck_assert(busy(s));
}
END_TEST

/* Many blocks of three streams come and go: none overlaps another, and the pool's figures are their sums. */
START_TEST(many_blocks_keep_apart_and_all_bytes_come_back)
{
    enum { BLOCKS = 600, ROUNDS = 12000 };
    static struct { CUdeviceptr p; size_t n; } block[BLOCKS];
    CUstream s[3];
    CUmemoryPool pool;
    cuuint64_t used = 0, seen;
    unsigned seed = 7;
    start();
    for (int i = 0; i < 3; i++)
        s[i] = new_stream();
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    for (int r = 0; r < ROUNDS; r++) {
        seed = seed * 1664525u + 1013904223u;
        int i = (int)(seed >> 8) % BLOCKS;
        CUstream mine = s[(seed >> 4) % 3];
        if (block[i].p != 0) {
            OK(cuMemFreeAsync(block[i].p, mine));
            used -= block[i].n;
            block[i].p = 0;
        } else {
            block[i].n = 1 + (seed >> 12) % 200000;
            OK(cuMemAllocAsync(&block[i].p, block[i].n, mine));
            used += block[i].n;
            for (int j = 0; j < BLOCKS; j++)
                ck_assert(j == i || block[j].p == 0 || block[j].p >= block[i].p + block[i].n ||
                          block[i].p >= block[j].p + block[j].n);
        }
        if (r % 500 == 0)
            OK(cuCtxSynchronize());
        OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &seen));
        ck_assert_uint_eq(seen, used);
    }
    for (int i = 0; i < BLOCKS; i++)
        if (block[i].p != 0)
            OK(cuMemFreeAsync(block[i].p, s[i % 3]));
    OK(cuCtxSynchronize());
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &seen));
    ck_assert_uint_eq(seen, 0);
}
END_TEST

START_TEST(joined_free_pieces_wait_for_the_later_free)
{
    CUdeviceptr a, b, c;
    CUevent passed;
    cuuint64_t max = UINT64_MAX;
    start();
    CUstream s = new_stream(), other = new_stream();
    CUmemoryPool pool = default_pool();
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &max));
    OK(cuMemAllocAsync(&a, 16 * MIB, s));
    OK(cuMemAllocAsync(&b, 16 * MIB, s));
    ck_assert_uint_eq(b, a + 16 * MIB);
    OK(cuEventCreate(&passed, CU_EVENT_DISABLE_TIMING));
    hold(s);
    OK(cuMemFreeAsync(b, s)); /* the second half first */
    OK(cuEventRecord(passed, s));
    hold(s);
    OK(cuMemFreeAsync(a, s));
    OK(cuMemAllocAsync(&c, 32 * MIB, s)); /* joined for this stream at once */
    ck_assert_uint_eq(c, a);
    OK(cuMemFreeAsync(c, s));
    release();
    OK(cuEventSynchronize(passed)); /* past the free of b, not past the last one */
    OK(cuMemAllocAsync(&c, MIB, other));
    ck_assert(c < a || c >= a + 32 * MIB);
    ck_assert(busy(s));
}
END_TEST

START_TEST(bytes_written_without_a_wait_are_visibly_wrong)
{
    CUdeviceptr p;
    start();
    CUstream s = new_stream(), other = new_stream();
    OK(cuMemAllocAsync(&p, 4096, s));
    hold(s);
    slow_fill(s, p, 0x11, 4096, 0);
    OK(cuMemsetD8Async(p, 0x22, 4096, other)); /* no dependency: the slow writer comes last */
    OK(cuStreamSynchronize(other));
    ck_assert_uint_eq(first_byte(p), 0x22);
    release();
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(p), 0x11);
}
END_TEST

START_TEST(a_pool_lives_until_its_last_block)
{
    CUdeviceptr p;
    CUmemoryPool pool;
    CUmemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    start();
    CUstream s = new_stream();
    size_t before = free_bytes();
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 4096, pool, s));
    OK(cuMemPoolDestroy(pool));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
    OK(cuMemsetD8Async(p, 5, 4096, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(first_byte(p), 5);
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(free_bytes(), before);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(default_pool()));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, free_async_takes_a_plain_block_in_stream_order);
    tcase_add_test(t, free_async_refuses_managed_memory);
    tcase_add_test(t, the_used_figure_falls_at_the_call);
    tcase_add_test(t, the_used_figure_is_exact_and_keeps_what_a_plain_free_frees);
    tcase_add_test(t, idle_pool_bytes_come_back_after_a_synchronisation);
    tcase_add_test(t, pools_grow_and_shrink_in_steps_of_32_mib);
    tcase_add_test(t, the_threshold_keeps_bytes_and_a_trim_takes_them);
    tcase_add_test(t, a_freed_block_serves_its_own_stream_at_once_and_another_later);
    tcase_add_test(t, many_blocks_keep_apart_and_all_bytes_come_back);
    tcase_add_test(t, joined_free_pieces_wait_for_the_later_free);
    tcase_add_test(t, bytes_written_without_a_wait_are_visibly_wrong);
    tcase_add_test(t, a_pool_lives_until_its_last_block);
}

int main(void) { return run_tests("async", fill); }
