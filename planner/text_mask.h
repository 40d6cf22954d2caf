/* What may be quoted in a message: what a file holds reaches a terminal in messages. No state; any thread. */
#ifndef TENURE_PLANNER_TEXT_MASK_H
#define TENURE_PLANNER_TEXT_MASK_H

/* Puts a '?' in the place of every control character, in place. */
static inline void tn_text_mask(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

#endif
