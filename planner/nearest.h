/* The known name that a mistyped one is nearest to. No state; any thread. */
#ifndef TENURE_PLANNER_NEAREST_H
#define TENURE_PLANNER_NEAREST_H

#include <stddef.h>

/* Inserted, dropped, replaced and swapped letters between the two; what lies behind the 63rd letter is not looked at. */
size_t tn_name_distance(const char *a, const char *b);

/* Of `count` names (NULL ones are passed over) the nearest to `name`, the earlier one of equals; NULL where none is near enough to be
 * meant: every third letter may be wrong, and one. */
const char *tn_nearest(const char *name, const char *const *names, size_t count);

#endif
