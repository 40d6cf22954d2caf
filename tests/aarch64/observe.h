/* What the observed dlsym found in its registers, and what its caller found afterwards. One thread. */
#ifndef TENURE_TESTS_AARCH64_OBSERVE_H
#define TENURE_TESTS_AARCH64_OBSERVE_H

#define OBSERVED_KEPT 11 /* callee-saved registers, at most */

typedef struct observed {
    unsigned long handle, name; /* the two argument registers */
    unsigned long stack;        /* stack pointer on entry */
    unsigned long from;         /* return address */
    unsigned long kept[OBSERVED_KEPT];
    unsigned long calls;
} observed;

extern observed observed_entry;

/* Fills every callee-saved register with a value of its own (index + 1, times `seed`), calls dlsym(handle, name) and stores
 * what those registers hold then; returns what dlsym returned. *before and *after are the stack pointer around the call,
 * *back the address that the call returns to. */
void *call_dlsym(void *handle, const char *name, unsigned long seed, unsigned long kept[OBSERVED_KEPT], unsigned long around[3]);
extern const unsigned observed_registers; /* how many of OBSERVED_KEPT this architecture has */

#endif
