/* Arithmetic on sizes and addresses that says when it does not fit, instead of wrapping round. Each function returns false and leaves
 * its result untouched where the true value has no place in its type. No state; any thread. */
#ifndef TENURE_TIERS_SIZE_H
#define TENURE_TIERS_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tn_size_add(size_t a, size_t b, size_t *sum)
{
    size_t value;
    if (__builtin_add_overflow(a, b, &value))
        return false;
    *sum = value;
    return true;
}

static inline bool tn_size_multiply(size_t a, size_t b, size_t *product)
{
    size_t value;
    if (__builtin_mul_overflow(a, b, &value))
        return false;
    *product = value;
    return true;
}

static inline bool tn_is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* The smallest multiple of `alignment`, a power of two, that is not below `n`. */
static inline bool tn_size_align_up(size_t n, size_t alignment, size_t *aligned)
{
    size_t sum;
    if (!tn_size_add(n, alignment - 1, &sum))
        return false;
    *aligned = sum & ~(alignment - 1);
    return true;
}

#endif
