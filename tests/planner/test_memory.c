/* plan_memory: the source document's cases, and properties over random demands against a second reckoning (memory_check.c). */
#define _GNU_SOURCE
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/memory_text.h"
#include "tests/planner/demand_maker.h"
#include "tests/planner/memory_check.h"

static const char *data_folder;

static tn_demand load(const char *file)
{
    char path[512], message[TN_DOCUMENT_MESSAGE];
    tn_demand d;
    snprintf(path, sizeof(path), "%s/%s", data_folder, file);
    ck_assert_msg(tn_demand_load(path, &d, message) == TN_DEMAND_OK, "%s", message);
    return d;
}

static uint64_t part_bytes(const tn_memory_plan *p, tn_memory_part part)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->line_count; i++)
        if (p->lines[i].part == part)
            sum += p->lines[i].bytes;
    return sum;
}

#define MIB ((uint64_t)1 << 20)

START_TEST(a_pool_gets_the_blocks_that_can_be_reached_and_no_more)
{
    tn_demand d = load("twice_too_much.yaml");
    tn_memory_plan p;
    tn_memory_plan_demand(&d, NULL, d.budget, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_FITS);
    ck_assert_uint_eq(p.kv.blocks, 2048);
    ck_assert_uint_eq(part_bytes(&p, TN_PART_KV), 2304 * MIB);
    ck_assert_uint_ge(p.left, 2304 * MIB); /* 4096 would have fit as well */
    ck_assert_ptr_null(memory_check(&d, d.budget, &p));
}
END_TEST

START_TEST(a_plan_that_does_not_fit_carries_every_line_and_its_levers)
{
    tn_demand d = load("does_not_fit.yaml");
    tn_memory_plan p;
    tn_memory_plan_demand(&d, NULL, d.budget, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_KV_FLOOR);
    ck_assert_uint_eq(p.total, 35952 * MIB);
    ck_assert_uint_eq(p.over, 3345 * MIB);
    static const struct { const char *name; tn_memory_part part; uint64_t mib; } lines[] = {
        {"CUDA context + driver", TN_PART_CHARGE, 1680}, {"library reserve", TN_PART_CHARGE, 3900}, {"engine-persistent", TN_PART_T2, 310},
        {"model weights", TN_PART_T1, 15467}, {"NVFP4 decode cache + SF slab", TN_PART_T1, 1800},
        {"executor scratch (high-water)", TN_PART_T4, 507}, {"KV pool (batch 8 x 4096 tok)", TN_PART_KV, 12288}};
    ck_assert_uint_eq(p.line_count, 7);
    for (size_t i = 0; i < 7; i++) {
        ck_assert_str_eq(p.lines[i].name, lines[i].name);
        ck_assert_int_eq(p.lines[i].part, lines[i].part);
        ck_assert_uint_eq(p.lines[i].bytes, lines[i].mib * MIB);
    }
    static const struct { const char *what; uint64_t frees, over; } levers[] = {{"limits.max_seq_len 4096 -> 2048", 6144, 0},
                                                                              {"kv.dtype f16 -> fp8", 6144, 0},
                                                                              {"limits.max_batch 8 -> 6", 3072, 273},
                                                                              {"without NVFP4 decode cache + SF slab", 1800, 1545}};
    ck_assert_uint_eq(p.lever_count, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(p.levers[i].what, levers[i].what);
        ck_assert_uint_eq(p.levers[i].frees, levers[i].frees * MIB);
        ck_assert_uint_eq(p.levers[i].over, levers[i].over * MIB);
    }
    ck_assert_uint_eq(p.fitting_batch, 5);
    ck_assert_uint_eq(p.fitting_seq_len, 2976);
    ck_assert(p.single_fits);
    ck_assert_ptr_null(memory_check(&d, d.budget, &p));
}
END_TEST

START_TEST(levers_are_planned_not_canned)
{
    tn_demand d = load("does_not_fit.yaml");
    tn_memory_plan p;
    d.vision.enabled = true;
    d.vision.weights = 9000 * MIB;
    d.items[0].optional = false; /* no longer to be dropped */
    d.kv.dtype = TN_DTYPE_INT4;  /* nothing smaller */
    tn_memory_plan_demand(&d, NULL, d.budget, &p);
    ck_assert_int_ne(p.result, TN_MEMORY_FITS);
    ck_assert_uint_eq(p.lever_count, 3);
    ck_assert_str_eq(p.levers[0].what, "features.vision.enabled true -> false");
    ck_assert_uint_eq(p.levers[0].frees, 9000 * MIB);
    ck_assert_str_eq(p.levers[1].what, "limits.max_seq_len 4096 -> 2048");
    ck_assert_uint_eq(p.levers[1].frees, 1536 * MIB);
    ck_assert_str_eq(p.levers[2].what, "limits.max_batch 8 -> 6");
    /* A batch of one sequence of one token has neither. */
    d.limits.max_batch = d.limits.max_seq_len = 1;
    d.vision.enabled = false;
    tn_memory_plan_demand(&d, NULL, MIB, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_OVER);
    ck_assert_uint_eq(p.lever_count, 0);
    ck_assert_uint_eq(p.fitting_seq_len + p.fitting_batch, 0);
}
END_TEST

START_TEST(a_pool_below_one_advertised_sequence_is_no_plan)
{
    tn_demand d = load("512_tokens.yaml");
    tn_memory_plan p;
    tn_memory_plan_demand(&d, NULL, d.budget, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_KV_FLOOR);
    ck_assert_uint_eq(p.room_blocks * p.kv.block_tokens, 512);
    ck_assert_uint_eq(tn_memory_floor_blocks(&p.kv) * p.kv.block_tokens, 32768);
    ck_assert_ptr_null(memory_check(&d, d.budget, &p));
    d.limits.max_seq_len = 512; /* what it can serve */
    tn_memory_plan_demand(&d, NULL, d.budget, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_FITS);
    ck_assert_uint_eq(p.kv.blocks, 16);
    d.limits.max_seq_len = 513;
    tn_memory_plan_demand(&d, NULL, d.budget, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_KV_FLOOR);
}
END_TEST

START_TEST(charges_come_out_of_the_pool)
{
    tn_demand d = load("512_tokens.yaml");
    d.limits.max_seq_len = 32;
    tn_memory_plan before, after;
    tn_memory_plan_demand(&d, NULL, d.budget, &before);
    tn_charges measured = d.charges;
    measured.bytes[TN_CLAIM_LIBRARIES] += 5 * before.kv.block_bytes;
    tn_memory_plan_demand(&d, &measured, d.budget, &after);
    ck_assert_uint_eq(before.kv.blocks, after.kv.blocks + 5);
    ck_assert_str_eq(after.lines[1].name, "library reserve (measured)");
}
END_TEST

START_TEST(figures_beyond_64_bits_are_named_not_wrapped)
{
    static const struct { uint64_t weights, cache, budget; const char *where; } rows[] = {
        {INT64_MAX, 1, TN_MEMORY_NO_BUDGET, "NVFP4 decode cache + SF slab"},
        {UINT64_MAX, 0, TN_MEMORY_NO_BUDGET, "model weights"},
        {INT64_MAX - 4096 * MIB, 0, TN_MEMORY_NO_BUDGET, "the sum of all lines"},
        {0, 0, UINT64_MAX - 1, "the budget"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_demand d = load("does_not_fit.yaml");
        d.model.weights = rows[i].weights;
        d.items[0].bytes = rows[i].cache;
        tn_memory_plan p;
        tn_memory_plan_demand(&d, NULL, rows[i].budget, &p);
        ck_assert_int_eq(p.result, TN_MEMORY_TOO_LARGE);
        ck_assert_str_eq(p.where, rows[i].where);
    }
    tn_demand d = load("does_not_fit.yaml");
    tn_memory_plan p;
    d.items[0].per_token = UINT64_MAX / 2;
    tn_memory_plan_demand(&d, NULL, d.budget, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_TOO_LARGE);
    d = load("does_not_fit.yaml");
    d.limits.max_seq_len = d.limits.max_batch = d.model.layers = 1000000000;
    tn_memory_plan_demand(&d, NULL, d.budget, &p);
    ck_assert_int_eq(p.result, TN_MEMORY_TOO_LARGE);
    ck_assert_str_eq(p.where, "KV pool");
}
END_TEST

/* Budgets around what is needed, so that every outcome is common. */
static uint64_t budget_for(const tn_demand *d, uint64_t *state)
{
    memory_need n = memory_need_of(d);
    wide all = n.fixed + n.wanted * n.block, budget = 0;
    switch (maker_below(state, 6)) {
    case 0:
        budget = n.fixed ? n.fixed - 1 - maker_below(state, 2) * (n.fixed / 2) : 0;
        break;
    case 1:
        budget = n.least - (n.least > 0);
        break;
    case 2:
        budget = n.least;
        break;
    case 3:
        budget = n.fixed + (all - n.fixed) / 1000 * maker_below(state, 1001);
        break;
    case 4:
        budget = all + maker_below(state, 1 << 30);
        break;
    default:
        return TN_MEMORY_NO_BUDGET;
    }
    return budget < INT64_MAX ? (uint64_t)budget : INT64_MAX;
}

enum { DETERMINISM = 1000, SUFFICIENCY = 2000 };

START_TEST(no_plan_of_random_demands_exceeds_its_budget)
{
    uint64_t outcomes[4] = {0}, clamped = 0;
    for (uint64_t seed = 1; seed <= SUFFICIENCY; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        tn_demand d;
        maker_demand(&state, &d);
        uint64_t budget = budget_for(&d, &state);
        tn_memory_plan p;
        tn_memory_plan_demand(&d, NULL, budget, &p);
        const char *wrong = memory_check(&d, budget, &p);
        ck_assert_msg(!wrong, "seed %" PRIu64 ": %s", seed, wrong);
        outcomes[p.result]++;
        clamped += p.result == TN_MEMORY_FITS && p.kv.blocks < p.wanted_blocks;
    }
    /* The property would hold of plans that all fail, too. */
    ck_assert_uint_gt(outcomes[TN_MEMORY_FITS], SUFFICIENCY / 4);
    ck_assert_uint_gt(outcomes[TN_MEMORY_OVER], SUFFICIENCY / 16);
    ck_assert_uint_gt(outcomes[TN_MEMORY_KV_FLOOR], SUFFICIENCY / 16);
    ck_assert_uint_gt(clamped, SUFFICIENCY / 32);
}
END_TEST

static int plant(int fault, tn_memory_plan *p)
{
    switch (fault) {
    case 0:
        p->kv.blocks++;
        return 1;
    case 1:
        p->total++;
        return 1;
    case 2:
        if (p->line_count == 0)
            return 0;
        p->lines[p->line_count / 2].bytes++;
        p->total++;
        return 1;
    case 3:
        if (p->line_count < 2 || p->lines[0].part == p->lines[p->line_count - 1].part)
            return 0;
        p->lines[0].part = TN_PART_KV;
        return 1;
    case 4:
        p->result = p->result == TN_MEMORY_FITS ? TN_MEMORY_OVER : TN_MEMORY_FITS;
        return 1;
    case 5: /* a pool that takes one block beyond the budget, with lines that agree */
        if (p->result != TN_MEMORY_FITS || !p->kv.block_bytes || p->lines[p->line_count - 1].part != TN_PART_KV)
            return 0;
        p->kv.blocks++;
        p->lines[p->line_count - 1].bytes += p->kv.block_bytes;
        p->total += p->kv.block_bytes;
        p->left -= p->kv.block_bytes;
        return 1;
    case 6:
        if (p->lever_count == 0)
            return 0;
        p->levers[p->lever_count - 1].frees++;
        return 1;
    case 7:
        if (p->lever_count == 0)
            return 0;
        p->lever_count--;
        return 1;
    case 8:
        if (p->result == TN_MEMORY_FITS)
            return 0;
        p->fitting_seq_len++;
        return 1;
    default:
        p->over++;
        return 1;
    }
}

START_TEST(a_planted_fault_is_noticed)
{
    enum { FAULTS = 10 };
    uint64_t planted[FAULTS] = {0};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull;
        tn_demand d;
        maker_demand(&state, &d);
        uint64_t budget = budget_for(&d, &state);
        for (int fault = 0; fault < FAULTS; fault++) {
            tn_memory_plan p;
            tn_memory_plan_demand(&d, NULL, budget, &p);
            if (p.result == TN_MEMORY_TOO_LARGE || !plant(fault, &p))
                continue;
            planted[fault]++;
            ck_assert_msg(memory_check(&d, budget, &p) != NULL, "seed %" PRIu64 ": fault %d", seed, fault);
        }
    }
    for (int fault = 0; fault < FAULTS; fault++)
        ck_assert_msg(planted[fault] > 20, "fault %d was planted %" PRIu64 " times", fault, planted[fault]);
}
END_TEST

/* Also in a process that is none of Check's. */
static void give_up(uint64_t seed, const char *why, const char *text)
{
    fprintf(stderr, "seed %" PRIu64 ": %s\n%s", seed, why, text);
    abort();
}

static uint64_t hash(const void *bytes, size_t length)
{
    uint64_t value = 0xcbf29ce484222325ull;
    for (const unsigned char *p = bytes; length > 0; length--)
        value = (value ^ *p++) * 0x100000001b3ull;
    return value;
}

/* The texts of all plans, one behind the other, from files in an order and spelling that `spelling` chooses. */
static char *all_plans(uint64_t spelling, size_t *length)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, length);
    for (uint64_t seed = 1; seed <= DETERMINISM; seed++) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ull, writing = seed * 77 + spelling;
        tn_demand d, read;
        maker_demand(&state, &d);
        char *text = NULL, message[TN_DOCUMENT_MESSAGE];
        size_t text_length;
        FILE *file = open_memstream(&text, &text_length);
        maker_write(&d, &writing, file);
        fclose(file);
        if (tn_demand_parse("random.yaml", text, text_length, &read, message) != TN_DEMAND_OK)
            give_up(seed, message, text);
        if (memcmp(&d, &read, sizeof(d)) != 0)
            give_up(seed, "it was read otherwise than written", text);
        free(text);
        tn_memory_plan p;
        memset(&p, (int)spelling, sizeof(p));
        tn_memory_plan_demand(&read, NULL, budget_for(&read, &state), &p);
        tn_memory_text(&p, out);
        json_t *json = tn_memory_json(&p);
        if (!json)
            give_up(seed, "no JSON", "");
        json_dumpf(json, out, JSON_COMPACT);
        json_decref(json);
        fprintf(out, "\n%016" PRIx64 "\n", hash(&p, sizeof(p))); /* also what padding and unused rows hold */
    }
    fclose(out);
    return bytes;
}

START_TEST(the_same_demand_gives_the_same_bytes)
{
    size_t first_length, length;
    char *first = all_plans(1, &first_length);
    ck_assert_uint_gt(first_length, DETERMINISM * 500);
    for (uint64_t spelling = 2; spelling < 3; spelling++) {
        char *plans = all_plans(spelling, &length);
        ck_assert(length == first_length && memcmp(first, plans, length) == 0);
        free(plans);
    }
    free(first);
}
END_TEST

static const char *self;

/* What another process writes, started anew with another environment and other addresses. */
static char *other_process(const char *const *environment, const char *spelling, size_t *length)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execle(self, self, "--all-plans", spelling, (char *)NULL, (char *const *)(uintptr_t)environment);
        _exit(127);
    }
    close(ends[1]);
    char *bytes = NULL, part[65536];
    FILE *all = open_memstream(&bytes, length);
    for (ssize_t n; (n = read(ends[0], part, sizeof(part))) > 0;)
        fwrite(part, 1, (size_t)n, all);
    fclose(all);
    close(ends[0]);
    int status = -1;
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
    return bytes;
}

START_TEST(other_processes_give_the_same_bytes)
{
    static const char *const environments[2][5] = {{"LC_ALL=de_DE.UTF-8", "TZ=Asia/Tokyo", "MALLOC_PERTURB_=85", "HOME=/nowhere", NULL}, {NULL}};
    size_t here_length, length;
    char *here = all_plans(9, &here_length);
    for (int i = 0; i < 2; i++) {
        char *there = other_process(environments[i], i ? "10" : "11", &length);
        ck_assert(length == here_length && memcmp(here, there, length) == 0);
        free(there);
    }
    free(here);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--all-plans") == 0) {
        size_t length;
        char *plans = all_plans(strtoull(argv[2], NULL, 10), &length);
        int bad = fwrite(plans, 1, length, stdout) != length;
        free(plans);
        return bad;
    }
    self = "/proc/self/exe";
    data_folder = argc > 1 ? argv[1] : "tests/data/demand";
    Suite *s = suite_create("memory");
    TCase *t = tcase_create("memory");
    tcase_add_test(t, a_pool_gets_the_blocks_that_can_be_reached_and_no_more);
    tcase_add_test(t, a_plan_that_does_not_fit_carries_every_line_and_its_levers);
    tcase_add_test(t, levers_are_planned_not_canned);
    tcase_add_test(t, a_pool_below_one_advertised_sequence_is_no_plan);
    tcase_add_test(t, charges_come_out_of_the_pool);
    tcase_add_test(t, figures_beyond_64_bits_are_named_not_wrapped);
    tcase_add_test(t, no_plan_of_random_demands_exceeds_its_budget);
    tcase_add_test(t, a_planted_fault_is_noticed);
    tcase_add_test(t, the_same_demand_gives_the_same_bytes);
    tcase_add_test(t, other_processes_give_the_same_bytes);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
