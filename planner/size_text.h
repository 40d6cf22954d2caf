/* Sizes as people write them: "32607MiB", "1.5 GiB", "4096". The one reader of them for the command's options and for every file that a
 * person writes. Nothing is allocated or kept; any thread. No floating point: a decimal is exact, and one that falls between two bytes
 * (1679.6MiB) is taken as the next whole byte. */
#ifndef TENURE_PLANNER_SIZE_TEXT_H
#define TENURE_PLANNER_SIZE_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef enum tn_size_error {
    TN_SIZE_OK = 0,
    TN_SIZE_EMPTY,     /* nothing, or blanks alone */
    TN_SIZE_NUMBER,    /* no number where one must stand: a sign, a letter, a dot without digits on both sides */
    TN_SIZE_UNIT,      /* a unit that is none of ours, or something behind the unit */
    TN_SIZE_TOO_LARGE, /* more than 2^64 - 1 bytes */
    TN_SIZE_ERRORS
} tn_size_error;

/* Reads `length` characters at `text`: digits, perhaps a dot and digits, perhaps blanks, perhaps one of B, KiB, MiB, GiB, TiB (powers of
 * 1024); blanks around it do not count. On TN_SIZE_OK sets *bytes. Else leaves it and sets *at (which may be NULL) to the index of the
 * character that is wrong, at most `length`. */
tn_size_error tn_size_read(const char *text, size_t length, uint64_t *bytes, size_t *at);

/* What is wrong, a phrase that stands behind the text and its place; never NULL. */
const char *tn_size_error_text(tn_size_error error);

/* The whole complaint without a final full stop, such as: "12GB" is no size: at character 3, the unit must be ... Text that is long or
 * not printable is shortened and masked. Cut at `size`, always ended. */
void tn_size_explain(const char *text, size_t length, tn_size_error error, size_t at, char *out, size_t size);

enum { TN_SIZE_TEXT = 24 };

/* The shortest text that reads back as exactly `bytes`, without a decimal: "2MiB", "1536KiB", "513". Returns `out`. */
const char *tn_size_write(uint64_t bytes, char out[TN_SIZE_TEXT]);

#endif
