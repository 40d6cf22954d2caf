#include "fixture.h"

#include <stdio.h>
#include <string.h>

uint64_t random_next(random_state *random)
{
    uint64_t z = (random->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t random_below(random_state *random, uint64_t limit)
{
    return random_next(random) % limit;
}

uint64_t fixture_seed(uint64_t given)
{
    const char *named = getenv("TENURE_SEED");
    uint64_t seed = named ? strtoull(named, NULL, 0) : given;
    printf("seed %llu (TENURE_SEED=%llu runs it again)\n", (unsigned long long)seed, (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

void instance_add(instance *it, uint64_t lower, uint64_t upper, uint64_t size)
{
    if (it->count == it->room) {
        it->room = it->room ? 2 * it->room : 64;
        it->buffers = realloc(it->buffers, it->room * sizeof(*it->buffers));
        it->offsets = realloc(it->offsets, it->room * sizeof(*it->offsets));
        ck_assert(it->buffers && it->offsets);
    }
    it->buffers[it->count] =
        (tn_pack_buffer){.id = it->count, .lower = lower, .upper = upper, .size = size, .alignment = 1, .hint = TN_PACK_NO_HINT};
    it->count++;
}

void instance_random(instance *it, random_state *random, size_t count, uint64_t time, uint64_t length, uint64_t size)
{
    for (size_t k = 0; k < count; k++) {
        uint64_t lower = random_below(random, time), life = 1 + random_below(random, 2 * length);
        uint64_t most = 1 + random_below(random, size);
        instance_add(it, lower, lower + life < time ? lower + life : time, 1 + random_below(random, most));
    }
}

void instance_cut(instance *it, random_state *random, size_t count, uint64_t time, uint64_t height)
{
    instance_add(it, 0, time, height);
    for (size_t tries = 0; it->count < count && tries < 100 * count; tries++) {
        tn_pack_buffer *b = &it->buffers[random_below(random, it->count)];
        uint64_t life = b->upper - b->lower;
        if (random_below(random, 2) && life > 1) {
            uint64_t at = b->lower + 1 + random_below(random, life - 1), upper = b->upper, size = b->size;
            b->upper = at;
            instance_add(it, at, upper, size);
        } else if (b->size > 1) {
            uint64_t low = 1 + random_below(random, b->size - 1), high = b->size - low;
            b->size = low;
            instance_add(it, b->lower, b->upper, high);
        }
    }
    instance_shuffle(it, random);
}

void instance_shuffle(instance *it, random_state *random)
{
    for (size_t k = it->count; k > 1; k--) {
        size_t other = random_below(random, k);
        tn_pack_buffer buffer = it->buffers[k - 1];
        uint64_t offset = it->offsets[k - 1];
        it->buffers[k - 1] = it->buffers[other];
        it->offsets[k - 1] = it->offsets[other];
        it->buffers[other] = buffer;
        it->offsets[other] = offset;
    }
}

void instance_free(instance *it)
{
    free(it->buffers);
    free(it->offsets);
    memset(it, 0, sizeof(*it));
}

static int is_alive(const tn_pack_buffer *b, uint64_t time)
{
    for (size_t g = 0; g < b->gap_count; g++)
        if (b->gaps[g].lower <= time && time < b->gaps[g].upper)
            return 0;
    return b->lower <= time && time < b->upper;
}

static uint64_t live_at(const instance *it, uint64_t time)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < it->count; k++)
        if (is_alive(&it->buffers[k], time))
            sum += it->buffers[k].size;
    return sum;
}

uint64_t instance_live_peak(const instance *it)
{
    uint64_t peak = 0;
    for (size_t k = 0; k < it->count; k++) {
        uint64_t live = live_at(it, it->buffers[k].lower);
        peak = live > peak ? live : peak;
        for (size_t g = 0; g < it->buffers[k].gap_count; g++) {
            live = live_at(it, it->buffers[k].gaps[g].upper);
            peak = live > peak ? live : peak;
        }
    }
    return peak;
}

void instance_pack(instance *it, const tn_pack_options *options)
{
    size_t culprit = 99;
    tn_pack_error error = tn_pack(it->buffers, it->count, options, it->offsets, &it->result, &culprit);
    ck_assert_msg(error == TN_PACK_OK, "buffer %zu: %s", culprit, tn_pack_error_text(error));
    const tn_pack_result *r = &it->result;
    tn_pack_fault fault;
    tn_pack_verdict verdict = tn_pack_check(it->buffers, it->count, it->offsets, r->height, &fault);
    ck_assert_msg(verdict == TN_PACK_HOLDS, "verdict %d: buffers %zu and %zu", (int)verdict, fault.a, fault.b);
    if (r->height > 0)
        ck_assert_int_eq(tn_pack_check(it->buffers, it->count, it->offsets, r->height - 1, &fault), TN_PACK_TOO_HIGH);
    ck_assert_uint_le(r->lower_bound, r->height);
    ck_assert(!r->proved || r->lower_bound == r->height);
    ck_assert(r->members[r->winner].ran || r->parts == 0);
    for (int m = 0; m < TN_PACK_MEMBER_COUNT; m++)
        if (r->members[m].ran)
            ck_assert_msg(r->members[m].height >= r->height, "%s alone is lower than the whole", tn_pack_member_name((tn_pack_member)m));
}

int fixture_run(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    tcase_set_timeout(tests, 300);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
