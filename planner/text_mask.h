/* What a file holds may be quoted in a message, which reaches a terminal, and be text in a plan. No state; any thread. */
#ifndef TENURE_PLANNER_TEXT_MASK_H
#define TENURE_PLANNER_TEXT_MASK_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes the UTF-8 character at `c`, which is no 0, has; 0: it is none, or a control character. Longer forms than need be, halves of
 * surrogates, and what is beyond the last character are none. */
static inline size_t tn_text_character(const unsigned char *c)
{
    static const struct { unsigned char mask, lead; uint32_t least; } forms[] = {{0x80, 0, 0x20}, {0xe0, 0xc0, 0xa0}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    size_t n = 0;
    while (n < sizeof forms / sizeof forms[0] && (c[0] & forms[n].mask) != forms[n].lead)
        n++;
    if (n == sizeof forms / sizeof forms[0])
        return 0;
    uint32_t code = (uint32_t)(c[0] & ~forms[n].mask);
    for (size_t i = 1; i <= n; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (c[i] & 0x3f);
    }
    return code < forms[n].least || code == 0x7f || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff ? 0 : n + 1;
}

/* Puts a '?' in the place of every control character and of every byte that is part of no UTF-8 character, in place. */
static inline void tn_text_mask(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c;) {
        size_t n = tn_text_character(c);
        if (n == 0)
            *c = '?';
        c += n ? n : 1;
    }
}

#endif
