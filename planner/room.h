/* Room that a site gets beyond what its own history takes, because another run needs it: said by a rule (planner/rules.h), kept in the plan's row,
 * asked for by verify. All zero: none. */
#ifndef TENURE_PLANNER_ROOM_H
#define TENURE_PLANNER_ROOM_H

#include <stddef.h>
#include <stdint.h>

#define TN_ROOM_BLOCKS_MAX 2048u

typedef struct tn_room {
    int given;       /* any of what follows */
    uint64_t size;   /* a request of so many bytes fits into each of its blocks or slots */
    uint64_t blocks; /* so many of them; those beyond what was seen share with no other site */
    uint64_t bytes;  /* so much more for the arena of its tier (T2, T5a) */
    uint8_t apart;   /* its addresses are shared with no other site */
} tn_room;

/* What both say together: the larger of each. */
void tn_room_join(tn_room *room, const tn_room *more);
/* "size=5029888 blocks=5 apart": as rules say it. Cut at `size`; empty where none is given. Returns `out`. */
char *tn_room_text(const tn_room *room, char *out, size_t size);

#endif
