#include "fixture.h"

#include <stdio.h>
#include <string.h>

uint64_t fixture_seed(uint64_t given)
{
    const char *text = getenv("TENURE_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : given;
}

const char *fixture_seed_line(uint64_t seed, size_t step)
{
    static char line[96];
    snprintf(line, sizeof line, "TENURE_SEED=%llu, step %zu", (unsigned long long)seed, step);
    return line;
}

/* Marsaglia's xorshift with a multiplier; a state of 0 would stay 0. */
uint64_t random_next(random_state *random)
{
    uint64_t x = random->state != 0 ? random->state : 0x9E3779B97F4A7C15u;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * 0x2545F4914F6CDD1Du;
}

uint64_t random_below(random_state *random, uint64_t limit)
{
    return (random_next(random) >> 11) % limit;
}

tn_host *fixture_host(const tn_host_options *options)
{
    tn_host *host = NULL;
    expect_ok(tn_host_create(options, &host));
    ck_assert_ptr_nonnull(host);
    return host;
}

size_t fixture_journal_live(tn_host *host, const char *tag)
{
    size_t live = 0, length = tn_host_journal_length(host);
    for (size_t i = 0; i < length; i++) {
        tn_host_entry entry;
        /* Asked for by hand: an assertion of Check's is a write to a pipe, and these are millions. */
        if (tn_host_journal_entry(host, i, &entry) != TN_MEM_OK || entry.sequence != i)
            ck_abort_msg("entry %zu of the journal is not there", i);
        if (entry.error != TN_MEM_OK || (tag != NULL && strcmp(entry.tag, tag) != 0))
            continue;
        if (live < entry.before)
            ck_abort_msg("entry %zu of the journal gives back more than there is", i);
        live = live - entry.before + entry.after;
    }
    return live;
}

void fixture_check_conservation(tn_host *host)
{
    tn_backend_stats stats;
    tn_backend_read_stats(tn_host_backend(host), &stats);
    ck_assert_uint_eq(stats.live, fixture_journal_live(host, NULL));
    ck_assert_uint_le(stats.live, stats.capacity);
    ck_assert_uint_le(stats.live, stats.peak);
    ck_assert_uint_le(stats.live, stats.reserved);
}

size_t fixture_count(tn_host *host, tn_host_op op, int phase)
{
    size_t count = 0, length = tn_host_journal_length(host);
    for (size_t i = 0; i < length; i++) {
        tn_host_entry entry;
        expect_ok(tn_host_journal_entry(host, i, &entry));
        count += entry.error == TN_MEM_OK && entry.op == op && (phase < 0 || entry.phase == phase);
    }
    return count;
}

void fixture_finish(tn_host *host)
{
    fixture_check_conservation(host);
    ck_assert_uint_eq(fixture_journal_live(host, NULL), 0);
    ck_assert_uint_eq(tn_host_late_writes(host), 0);
    ck_assert_uint_eq(tn_host_destroy(host), 0);
}

int fixture_run(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
