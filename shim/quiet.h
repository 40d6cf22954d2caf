/* Whether every thread has left our own code since a moment, so that what no table leads to any more can be taken apart. Each thread's word (`busy` of its
 * tn_thread) is registered from its first call to its end; it stays the thread's own. Any thread; nothing here is called on a common path. */
#ifndef TENURE_SHIM_QUIET_H
#define TENURE_SHIM_QUIET_H

/* The thread whose word this is begins; it ends, before the word's memory goes. */
void tn_quiet_join(const int *busy);
void tn_quiet_leave(const int *busy);
/* A thread makes calls that is not registered: nobody knows when it has left, so from now on no answer is 1. */
void tn_quiet_unknown(void);

/* 1: each thread but the caller (`own`) was seen outside after this call began, so whoever comes in sees all that was stored before it. 0: one was
 * inside for longer than a millisecond or so, or it cannot be known here. Waits that long at most; calls the system. */
int tn_quiet_since_now(const int *own);

#endif
