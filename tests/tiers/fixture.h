/* What the tests of tiers share: a fake GPU's memory, its journal replayed against its figures, and random numbers that can be had again. */
#ifndef TENURE_TESTS_TIERS_FIXTURE_H
#define TENURE_TESTS_TIERS_FIXTURE_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "tiers/backend_host.h"
#include "tiers/tenure_tiers.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define expect_error(wanted, call)                                                                              \
    do {                                                                                                        \
        tn_mem_error got_ = (call);                                                                             \
        ck_assert_msg(got_ == (wanted), "%s: \"%s\", not \"%s\"", #call, tn_mem_error_text(got_), tn_mem_error_text(wanted)); \
    } while (0)

#define expect_ok(call) expect_error(TN_MEM_OK, call)

/* Seeds of the property tests: those given, or the one that TENURE_SEED names. Prints itself where a test fails (fixture_seed_line). */
uint64_t fixture_seed(uint64_t given);
const char *fixture_seed_line(uint64_t seed, size_t step);

typedef struct random_state {
    uint64_t state;
} random_state;

uint64_t random_next(random_state *random);
uint64_t random_below(random_state *random, uint64_t limit);

tn_host *fixture_host(const tn_host_options *options);

/* The bytes that the journal leaves live: all of them, or those of a tag. */
size_t fixture_journal_live(tn_host *host, const char *tag);

/* V1: journal and figures agree. */
void fixture_check_conservation(tn_host *host);

/* How many operations of a kind succeeded in a phase (-1: in any). */
size_t fixture_count(tn_host *host, tn_host_op op, int phase);

/* Ends a test: nothing is live, nothing was written late, nothing leaks. */
void fixture_finish(tn_host *host);

int fixture_run(const char *name, TCase *tests);

#endif
