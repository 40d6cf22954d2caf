/* See slots_stacks.h. */
#define _GNU_SOURCE
#include "tests/callsite/slots_stacks.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "shim/callsite.h"

#define FAKE_BYTES ((uint64_t)64 * 1024)
#define PAGE 4096u

void image_take(stack_image *image, const void *caller, const void *frame, int max)
{
    uint64_t lowest, end;
    image->frame = (uint64_t)(uintptr_t)frame;
    if (tn_stack_bounds(&lowest, &end) != 0)
        abort();
    image->count = (end - image->frame) / 8 < IMAGE_WORDS ? (int)((end - image->frame) / 8) : IMAGE_WORDS;
    for (int i = 0; i < image->count; i++)
        image->words[i] = ((const volatile uint64_t *)frame)[i];
    image->n = tn_unwind(caller, image->frames, max);
}

void fake_stack_make(fake_stack *s)
{
    char *p = mmap(NULL, FAKE_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + FAKE_BYTES, PAGE, PROT_NONE) != 0)
        abort();
    s->start = (uint64_t)(uintptr_t)p;
    s->end = s->start + FAKE_BYTES;
}

void fake_stack_unmake(fake_stack *s)
{
    munmap((void *)(uintptr_t)s->start, FAKE_BYTES + PAGE);
}

uint64_t image_put(const stack_image *image, const fake_stack *s, int words)
{
    uint64_t frame = s->end - 8 * (uint64_t)words;
    uint64_t *to = (uint64_t *)(uintptr_t)frame;
    for (int i = 0; i < words; i++) {
        uint64_t w = image->words[i];
        to[i] = w - image->frame < 8 * (uint64_t)IMAGE_WORDS ? w - image->frame + frame : w;
    }
    return frame;
}
