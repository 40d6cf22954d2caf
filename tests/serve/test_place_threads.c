/* Four threads on one place: no two live blocks overlap, and no block is handed out while the device may still be using what was there before. Each
 * block's memory says whose it is, and of a freed one what work it still had; the next owner of the bytes looks. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/serve/place_fixture.h"

enum { THREADS = 4, STEPS = 6000, LIVE = 12, STEP_BYTES = 512 };
enum { LEFT, RIGHT, LARGE, FIXED, ENGINE, MODEL, DRAFT, STACK, SHARED, SHARED_LARGE, PINNED, ROWS };

/* In the first bytes of each 512. */
typedef struct stamp {
    uint64_t owner; /* 0: nobody's */
    uint64_t queue, sequence; /* of the work that its last owner left */
} stamp;

typedef struct live { char *address; size_t bytes; uint32_t row, stream; } live;
typedef struct thread { uint32_t number; random_state random; live blocks[LIVE]; size_t count; uint64_t served, spilled; } thread;

static thread threads[THREADS];
static char first_fault[200];
static int faults;

static void fault(const char *what, uint32_t row, uint32_t number)
{
    if (__atomic_fetch_add(&faults, 1, __ATOMIC_SEQ_CST) == 0)
        snprintf(first_fault, sizeof first_fault, "thread %u, row %u: %s", number, row, what);
}

static int is_async(uint32_t row)
{
    return section.rows[row].family == TN_FAMILY_ASYNC;
}

static void take_bytes(const thread *t, const live *b)
{
    for (size_t at = 0; at < b->bytes; at += STEP_BYTES) {
        stamp *s = (stamp *)(b->address + at);
        if (__atomic_exchange_n(&s->owner, t->number, __ATOMIC_SEQ_CST) != 0) {
            fault("it overlaps a live block", b->row, t->number);
            return;
        }
        tn_work_mark mark = {__atomic_load_n(&s->queue, __ATOMIC_RELAXED), __atomic_load_n(&s->sequence, __ATOMIC_RELAXED)};
        if (mark.queue && !device_done(mark) && !(is_async(b->row) && device_ordered(mark, b->stream)))
            fault("the device may still use it", b->row, t->number);
    }
}

static void leave_bytes(const thread *t, const live *b, tn_work_mark mark)
{
    for (size_t at = 0; at < b->bytes; at += STEP_BYTES) {
        stamp *s = (stamp *)(b->address + at);
        __atomic_store_n(&s->queue, mark.queue, __ATOMIC_RELAXED);
        __atomic_store_n(&s->sequence, mark.sequence, __ATOMIC_RELAXED);
        if (__atomic_exchange_n(&s->owner, 0, __ATOMIC_SEQ_CST) != t->number)
            fault("another took it while it was live", b->row, t->number);
    }
}

static size_t random_bytes(thread *t, uint32_t row)
{
    return 1 + random_below(&t->random, section.rows[row].largest);
}

static void take_one(thread *t)
{
    uint32_t row = (uint32_t)random_below(&t->random, ROWS);
    live b = {.row = row, .bytes = random_bytes(t, row), .stream = is_async(row) ? t->number : 0};
    tn_place_answer a;
    tn_place_take(place, row, b.bytes, b.stream, 0, random_below(&t->random, 8) == 0, &a);
    t->served += a.address != NULL;
    t->spilled += a.address == NULL;
    if (!a.address)
        return;
    if ((uintptr_t)a.address % tn_native_alignment(section.rows[row].family, b.bytes))
        fault("it is not aligned", row, t->number);
    b.address = a.address;
    take_bytes(t, &b);
    t->blocks[t->count++] = b;
}

static void give_one(thread *t, int in_order)
{
    size_t i = in_order ? t->count - 1 : random_below(&t->random, t->count);
    live b = t->blocks[i];
    memmove(&t->blocks[i], &t->blocks[i + 1], (--t->count - i) * sizeof b);
    /* Some have no work left; of T1 the driver's free waits for all of it. */
    tn_work_mark mark = {.queue = TN_WORK_NO_QUEUE};
    if (b.row != MODEL && b.row != DRAFT && random_below(&t->random, 4))
        mark = device_enqueue(b.stream ? b.stream : 1 + random_below(&t->random, THREADS));
    leave_bytes(t, &b, mark);
    tn_work_set set = device_set(mark);
    if (tn_place_give(place, b.row, b.address, b.stream, &set) != TN_MEM_OK)
        fault("its free was refused", b.row, t->number);
}

static void *run(void *self)
{
    thread *t = self;
    for (size_t i = 0; i < STEPS; i++) {
        uint64_t what = random_below(&t->random, 100);
        if (what < 46 && t->count < LIVE)
            take_one(t);
        else if (what < 92 && t->count)
            give_one(t, what & 1);
        else if (what < 97)
            device_finish(1 + random_below(&t->random, THREADS));
        else
            device_join(1 + random_below(&t->random, THREADS), 1 + random_below(&t->random, THREADS));
    }
    while (t->count)
        give_one(t, 1);
    return NULL;
}

static void plan_shared(void)
{
    static const uint64_t at_left[] = {0, 4096, 12288}, at_right[] = {512, 9216}, at_large[] = {0}, at_shared[] = {0, 2048, 4096};
    fixture_begin();
    plan_row(TN_D_PACKED, TN_FAMILY_DEVICE, 1024, 0);
    plan_class(1024, 3, at_left);
    plan_row(TN_D_PACKED, TN_FAMILY_DEVICE, 2048, 0);
    plan_class(2048, 2, at_right);
    plan_row(TN_D_PACKED, TN_FAMILY_DEVICE, 8192, 0);
    plan_class(2048, 1, at_large);
    plan_class(8192, 1, at_large);
    plan_row(TN_D_T3, TN_FAMILY_DEVICE, 1000, 4 * 1024);
    plan_row(TN_D_T2, TN_FAMILY_DEVICE, 4096, 0);
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 4096, 0);
    plan_row(TN_D_T1, TN_FAMILY_DEVICE, 4096, 0);
    plan_row(TN_D_T4, TN_FAMILY_ASYNC, 4096, 0);
    plan_row(TN_D_PACKED, TN_FAMILY_ASYNC, 1024, 0);
    plan_class(1024, 3, at_shared);
    plan_row(TN_D_PACKED, TN_FAMILY_ASYNC, 4096, 0);
    plan_class(4096, 1, at_large);
    plan_pinned_row(0, 4096);
    plan_class(4096, 3, (const uint64_t[]){0, 4096, 8192});
    plan_tier(TN_D_PACKED, TN_FAMILY_DEVICE, 0, 16384, 0);
    plan_tier(TN_D_T1, TN_FAMILY_DEVICE, 0, 16384, 0);
    plan_tier(TN_D_T2, TN_FAMILY_DEVICE, 0, 32768, 0);
    plan_tier(TN_D_T4, TN_FAMILY_ASYNC, 0, 16384, THREADS - 1);
    plan_tier(TN_D_PACKED, TN_FAMILY_ASYNC, 0, 8192, 0);
    plan_tier(TN_D_T5B, TN_FAMILY_PINNED, 0, 12288, 0);
    plan_region(MODEL, 2048, 8192, 4, 2);
    plan_region(DRAFT, 512, 16384, 6, 2);
    place_begin();
}

START_TEST(four_threads_never_have_the_same_bytes_nor_bytes_in_use)
{
    pthread_t handles[THREADS];
    uint64_t seed = fixture_seed(20261130), served = 0, spilled = 0;
    plan_shared();
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i] = (thread){.number = i + 1, .random = {seed * THREADS + i + 1}};
        ck_assert_int_eq(pthread_create(&handles[i], NULL, run, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(handles[i], NULL), 0);
        served += threads[i].served;
        spilled += threads[i].spilled;
    }
    ck_assert_msg(faults == 0, "%s: %d faults, the first in %s", fixture_seed_line(seed, 0), faults, first_fault);
    /* Both ways were gone often. */
    ck_assert_uint_ge(served, THREADS * STEPS / 10);
    ck_assert_uint_ge(spilled, THREADS * STEPS / 100);
    ck_assert_uint_eq(fixture_journal_live(device_host, "tenure T1"), 0);
    tn_place_stats stats;
    tn_place_read_stats(place, &stats);
    ck_assert_uint_eq(stats.waits, device_waits());
    fixture_end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, four_threads_never_have_the_same_bytes_nor_bytes_in_use);
    return fixture_run("place_threads", tests);
}
