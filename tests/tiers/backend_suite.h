/* What every backend must hold, written once: over host memory and a stand-in driver in unit tests, over the fake GPU in CI, over a card. It needs
 * no test framework, so that it runs where only a compiler was. One thread; prints "ok NAME" or "not ok NAME: why" per invariant. */
#ifndef TENURE_TESTS_TIERS_BACKEND_SUITE_H
#define TENURE_TESTS_TIERS_BACKEND_SUITE_H

#include <stdbool.h>
#include <stdint.h>

#include "tiers/backend.h"

typedef struct suite_subject {
    const char *name;
    tn_backend *backend; /* with nothing live; decommit follows at once */
    bool grows;
    size_t unit;            /* bytes that growth comes in; of a plain backend any size */
    size_t max_alignment;   /* larger ones would be too dear */
    size_t operations;      /* of the random sequence */
    uint64_t seed;
    void *self;
    /* Writes the word over all of [at, at + bytes), and counts the words that are another. */
    void (*fill)(void *self, void *at, uint32_t word, size_t bytes);
    size_t (*wrong)(void *self, const void *at, uint32_t word, size_t bytes);
    /* Bytes that the subject's device has in use, by an account that is not the backend's; NULL: there is none. */
    size_t (*physical)(void *self);
    size_t slack; /* bytes that small blocks may find in what is in use already, so that the account need not rise by them */
    /* The n-th driver call from now fails, and with `lasting` all behind it; 0: none. Whether it came. NULL: no faults. */
    void (*fail)(void *self, uint64_t nth, bool lasting);
    bool (*failed)(void *self);
} suite_subject;

/* `fill` and `wrong` for memory that the host can write. */
void suite_host_fill(void *self, void *at, uint32_t word, size_t bytes);
size_t suite_host_wrong(void *self, const void *at, uint32_t word, size_t bytes);

/* Runs all that applies; the number of invariants that did not hold. */
int suite_run(const suite_subject *subject);

/* How many "ok" lines there were in this process. */
int suite_passed(void);

#endif
