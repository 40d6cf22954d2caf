/* Joining and saying it. */
#include "planner/room.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void raise_to(uint64_t *value, uint64_t least)
{
    if (*value < least)
        *value = least;
}

void tn_room_join(tn_room *room, const tn_room *more)
{
    room->given |= more->given;
    room->apart |= more->apart;
    raise_to(&room->size, more->size);
    raise_to(&room->blocks, more->blocks);
    raise_to(&room->bytes, more->bytes);
}

char *tn_room_text(const tn_room *room, char *out, size_t size)
{
    const struct { const char *word; uint64_t value; } words[] = {{"size", room->size}, {"blocks", room->blocks}, {"bytes", room->bytes}};
    size_t length = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && length < size; i++)
        if (words[i].value)
            length += (size_t)snprintf(out + length, size - length, "%s%s=%" PRIu64, length ? " " : "", words[i].word, words[i].value);
    if (room->apart && length < size)
        snprintf(out + length, size - length, "%sapart", length ? " " : "");
    return out;
}
