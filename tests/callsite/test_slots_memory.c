/* The verified-slot cache on stacks in memory of the test's own: they end too early, are damaged, or are not what they are said to be. */
#define _GNU_SOURCE
#include <alloca.h>
#include <string.h>

#include "tests/callsite/slots_looks.h"
#include "tests/callsite/slots_stacks.h"

#define IMAGES 12
static stack_image images[IMAGES];

static __attribute__((noinline)) void hook_image(stack_image *image)
{
    image_take(image, __builtin_return_address(0), __builtin_frame_address(0), (int)TN_FRAMES_MAX + 1);
    KEEP;
}

static __attribute__((noinline)) void recurse_image(stack_image *image, int depth, unsigned kinds);

static __attribute__((noinline)) void pointer_image(stack_image *image, int depth, unsigned kinds)
{
    char *room = alloca(32 + (size_t)depth * 16);
    __asm__ __volatile__("" ::"r"(room) : "memory");
    recurse_image(image, depth - 1, kinds);
    KEEP;
}

/* Bits of `kinds` say which frames have a frame pointer, the innermost ones last. */
static void recurse_image(stack_image *image, int depth, unsigned kinds)
{
    if (depth > 0 && kinds >> (depth % 4) & 1)
        pointer_image(image, depth, kinds);
    else if (depth > 0)
        recurse_image(image, depth - 1, kinds);
    else
        hook_image(image);
    KEEP;
}

/* No two alike. */
static void take_image(int k)
{
    recurse_image(&images[k], k % 2 ? 4 : 12, (unsigned)k / 2 + 1);
}

START_TEST(reading_stops_at_the_end_of_the_stack)
{
    fake_stack s;
    start();
    for (volatile int k = 0; k < IMAGES; k++) {
        stack_image *image = &images[k];
        take_image(k);
        fake_stack_make(&s);
        tn_slots *c = tn_slots_new(s.start, s.end);
        ck_assert_ptr_nonnull(c);
        uint64_t frame = image_put(image, &s, image->count);
        ck_assert_int_eq(tn_slots_keep_in(c, 1 << 16, frame, image->frames, image->n, (int)TN_FRAMES_MAX + 1, 7), 1);
        ck_assert_uint_eq(tn_slots_find_in(c, 1 << 16, image->frames[0], frame), 7);
        int hits = 0, misses = 0;
        for (int words = image->count - 1; words >= 2; words--) { /* one word less each time: a page that cannot be read follows */
            frame = image_put(image, &s, words);
            if (tn_slots_find_in(c, 1 << 16, image->frames[0], frame) == 7) {
                ck_assert_int_eq(misses, 0);
                hits++;
            } else {
                misses++;
            }
            /* nor does keeping look beyond the end */
            tn_slots *other = tn_slots_new(s.start, s.end);
            ck_assert_int_eq(tn_slots_keep_in(other, 1 << 16, frame, image->frames, image->n, (int)TN_FRAMES_MAX + 1, 7), misses == 0);
            tn_slots_free(other);
        }
        ck_assert_int_gt(misses, 2 * image->n - 2); /* each return address has a word, and most frames another */
        ck_assert_uint_eq(tn_slots_find_in(c, 1 << 16, image->frames[0], s.end - 8), TN_SITE_NONE);
        tn_slots_free(c);
        fake_stack_unmake(&s);
    }
}
END_TEST

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 8;
}

/* Puts something likely in place of a word: another word, an address a little off, a return address of another chain. */
static void damage(uint64_t *word, const uint64_t *all, int count)
{
    const stack_image *other = &images[random_bits() % IMAGES];
    switch (random_bits() % 5) {
    case 0: *word = all[random_bits() % (uint64_t)count]; break;
    case 1: *word += 8 * (random_bits() % 64) - 256; break;
    case 2: *word = other->frames[random_bits() % (uint64_t)other->n]; break;
    case 3: *word = (uint64_t)(uintptr_t)&all[random_bits() % (uint64_t)count]; break;
    default: *word = random_bits(); break;
    }
}

/* From some word on another image's. */
static void splice(const stack_image *other, int from, uint64_t *copy, int words)
{
    uint64_t frame = (uint64_t)(uintptr_t)copy;
    for (int i = from; i < words && i < other->count; i++) {
        uint64_t w = other->words[i];
        copy[i] = w - other->frame < 8 * (uint64_t)IMAGE_WORDS ? w - other->frame + frame : w;
    }
}

/* Damaged stacks, some of which are by that the stack of another chain: a hit must be what a walk by the tables gives, for this very memory. */
START_TEST(a_hit_is_what_the_tables_give)
{
    fake_stack s;
    long hits = 0, other_hits = 0, misses = 0;
    start();
    fake_stack_make(&s);
    tn_slots *c = tn_slots_new(s.start, s.end);
    for (volatile uint32_t k = 0; k < IMAGES; k++) {
        take_image((int)k);
        uint64_t frame = image_put(&images[k], &s, images[k].count);
        ck_assert_int_eq(tn_slots_keep_in(c, 1 << 16, frame, images[k].frames, images[k].n, (int)TN_FRAMES_MAX + 1, 10 + k), 1);
    }
    for (int i = 0; i < 150000; i++) {
        uint32_t k = (uint32_t)(random_bits() % IMAGES);
        const stack_image *image = &images[k];
        int words = 200 + (int)(random_bits() % 200);
        if (words > image->count)
            words = image->count;
        uint64_t frame = image_put(image, &s, words);
        uint64_t *copy = (uint64_t *)(uintptr_t)frame;
        uint64_t caller = copy[1];
        if (random_bits() % 4 == 0)
            splice(&images[random_bits() % IMAGES], (int)(random_bits() % 40), copy, words);
        if (random_bits() % 4)
            caller = copy[1];
        for (uint64_t d = random_bits() % 4; d > 0; d--)
            damage(&copy[random_bits() % 8 ? random_bits() % 80 : random_bits() % (uint64_t)words], copy, words);
        uint32_t site = tn_slots_find_in(c, 1 << 16, caller, frame);
        if (site == TN_SITE_NONE) {
            misses++;
            continue;
        }
        hits++;
        other_hits += site != 10 + k;
        ck_assert_uint_ge(site, 10);
        ck_assert_uint_lt(site, 10 + IMAGES);
        const stack_image *is = &images[site - 10];
        ck_assert_uint_eq(is->frames[0], caller);
        tn_slots *fresh = tn_slots_new(s.start, s.end);
        ck_assert_int_eq(tn_slots_keep_in(fresh, 1 << 16, frame, is->frames, is->n, (int)TN_FRAMES_MAX + 1, site), 1);
        tn_slots_free(fresh);
    }
    ck_assert_int_gt(hits, 10000);
    ck_assert_int_gt(misses, 10000);
    ck_assert_int_gt(other_hits, 0);
    tn_slots_free(c);
    fake_stack_unmake(&s);
}
END_TEST

START_TEST(only_what_stands_on_the_stack_is_kept)
{
    fake_stack s;
    const int max = (int)TN_FRAMES_MAX + 1;
    start();
    fake_stack_make(&s);
    for (volatile int k = 0; k < IMAGES; k++) {
        stack_image *image = &images[k];
        take_image(k);
        uint64_t frame = image_put(image, &s, image->count);
        tn_slots *c = tn_slots_new(s.start, s.end);
        for (int i = 0; i < image->n; i++) { /* another address than the one that is there */
            static stack_image other; /* not on the stack that is looked at */
            other = *image;
            other.frames[i] = image->frames[i] == images[0].frames[0] ? image->frames[i] + 1 : images[0].frames[0];
            ck_assert_int_eq(tn_slots_keep_in(c, 1 << 16, frame, other.frames, image->n, max, 7), 0);
        }
        for (int n = 1; n < image->n; n++) /* a chain that does not end where the stack does */
            ck_assert_int_eq(tn_slots_keep_in(c, 1 << 16, frame, image->frames, n, max, 7), 0);
        ck_assert_int_eq(tn_slots_keep_in(c, 1 << 16, frame, image->frames, image->n, max, TN_SITE_NONE), 0);
        ck_assert_uint_eq(tn_slots_count(c), 0);
        ck_assert_int_eq(tn_slots_keep_in(c, 1 << 16, frame, image->frames, image->n, max, 7), 1);
        ck_assert_uint_eq(tn_slots_find_in(c, 1 << 16, image->frames[0], frame), 7);
        ck_assert_uint_eq(tn_slots_find_in(c, 1 << 16, image->frames[0] + 1, frame), TN_SITE_NONE); /* not the caller that is there */
        tn_slots_free(c);
    }
    fake_stack_unmake(&s);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        reading_stops_at_the_end_of_the_stack,
        a_hit_is_what_the_tables_give,
        only_what_stands_on_the_stack_is_kept,
    };
    return run_tests("slots_memory", tests, (int)(sizeof tests / sizeof tests[0]));
}
