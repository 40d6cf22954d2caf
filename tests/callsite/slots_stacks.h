/* Copies of real stacks in memory of a test's own, for the verified slots to be tried on: cut off at an unreadable page, or damaged. Belongs to the
 * test; one thread. The words of a copy that pointed into the original point to the same place in the copy. */
#ifndef TENURE_TESTS_SLOTS_STACKS_H
#define TENURE_TESTS_SLOTS_STACKS_H

#include <stdint.h>

#include "shim/unwind.h"

#define IMAGE_WORDS 1024

/* A hook's stack from its frame address on, and the chain that the unwinder saw above it. */
typedef struct stack_image {
    uint64_t frame;
    uint64_t words[IMAGE_WORDS];
    int count;
    uint64_t frames[TN_UNWIND_MAX];
    int n;
} stack_image;

/* Takes the image of a hook with this return address and frame address; `max` frames at most. */
void image_take(stack_image *image, const void *caller, const void *frame, int max);

/* Memory whose end is followed by an unreadable page: [start, end). */
typedef struct fake_stack {
    uint64_t start, end;
} fake_stack;
void fake_stack_make(fake_stack *s);
void fake_stack_unmake(fake_stack *s);

/* Copies the first `words` of the image so that they end with the fake stack; the frame address of the copy. */
uint64_t image_put(const stack_image *image, const fake_stack *s, int words);

#endif
