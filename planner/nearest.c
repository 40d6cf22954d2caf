/* Optimal string alignment over three rows. */
#define _GNU_SOURCE
#include "planner/nearest.h"

#include <string.h>

enum { LETTERS = 63 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t tn_name_distance(const char *a, const char *b)
{
    size_t rows[3][LETTERS + 1];
    size_t n = strnlen(a, LETTERS), m = strnlen(b, LETTERS);
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t k = 0; k <= m; k++)
        last[k] = k;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t k = 1; k <= m; k++) {
            now[k] = least(least(last[k], now[k - 1]) + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = least(now[k], before[k - 2] + 1);
        }
        size_t *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[m];
}

const char *tn_nearest(const char *name, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t best_distance = 1 + strnlen(name, LETTERS) / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        if (!names[i])
            continue;
        size_t distance = tn_name_distance(name, names[i]);
        if (distance < best_distance && distance < strlen(names[i])) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}
