/* Room for threads that take turns otherwise than they were seen to. Of blocks that several threads take from one site, how many are alive at once
 * is the scheduler's choice: three loaders with a staging block each had three of them alive in nine runs of ten, and two in the tenth. */
#ifndef TENURE_PLANNER_ROOM_THREADS_H
#define TENURE_PLANNER_ROOM_THREADS_H

#include "planner/section.h"

/* Adds to units[].room what each site needs if every thread has its most alive at the same time: so many blocks, at most twice as many as were seen
 * at once or two more (a thousand threads that take turns at four blocks do not get a thousand), and for arenas the bytes beyond those seen. Sites
 * whose blocks one thread took, and those already given as much, stay as they are. Needs tn_simulate_units; threads beyond the first 255 of a
 * process count as one. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_room_for_threads(tn_section *s);

#endif
