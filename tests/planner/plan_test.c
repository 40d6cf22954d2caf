/* The shared parts. */
#define _GNU_SOURCE
#include "tests/planner/plan_test.h"

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planner/plan_check.h"
#include "planner/verify.h"

static char folder[PATH_MAX];

void scratch_make(void)
{
    const char *base = getenv("TEST_TMPDIR");
    snprintf(folder, sizeof(folder), "%s/plan-XXXXXX", base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void scratch_remove(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_file(const char *name)
{
    static char paths[8][PATH_MAX + 256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

program program_begin(uint32_t pid)
{
    program p = {.journal = jm_new(pid), .at = 1, .mark = 0, .thread = 1, .ctx = 1};
    jm_device(p.journal, 0, 0x11, (uint64_t)80 << 30, "NVIDIA Example");
    jm_module(p.journal, 1, "00112233445566778899aabbccddeeff00112233", "/opt/program");
    for (uint32_t i = 1; i <= 64; i++)
        jm_site(p.journal, TN_SITE_FIRST + i, 0x1000 + i, 1, (const uint64_t[][2]){{1, 0x100 * i}});
    return p;
}

void program_end_in(program *p, const char *run, const char *name)
{
    char file[512];
    if (run) {
        ck_assert(mkdir(scratch_file(run), 0777) == 0 || errno == EEXIST);
        snprintf(file, sizeof(file), "%s/%s.tnj", run, name);
    } else {
        snprintf(file, sizeof(file), "%s.tnj", name);
    }
    jm_header(p->journal)->random_id ^= (uint64_t)(unsigned char)name[0] << 8 | (unsigned char)name[strlen(name) - 1];
    jm_write(p->journal, scratch_file(file), 0);
    jm_free(p->journal);
    p->journal = NULL;
}

void program_end(program *p, const char *name)
{
    program_end_in(p, NULL, name);
}

void other(program *p, tn_event e)
{
    e.ctx = e.ctx ? e.ctx : p->ctx;
    e.device = p->device;
    e.phase = p->phase;
    jm_event(p->journal, p->thread, p->at++, e);
}

void take(program *p, uint8_t kind, uint32_t site, uint64_t addr, uint64_t bytes)
{
    other(p, (tn_event){.type = TN_EV_ALLOC, .kind = kind, .site = TN_SITE_FIRST + site, .addr = addr, .bytes = bytes, .aux = (bytes + 511) & ~(uint64_t)511});
}

void take_on(program *p, uint32_t site, uint64_t addr, uint64_t bytes, uint32_t stream)
{
    other(p, (tn_event){.type = TN_EV_ALLOC, .kind = TN_KIND_ASYNC, .site = TN_SITE_FIRST + site, .addr = addr, .bytes = bytes,
                        .aux = (bytes + 511) & ~(uint64_t)511, .stream = stream});
}

void give(program *p, uint8_t kind, uint64_t addr)
{
    other(p, (tn_event){.type = TN_EV_FREE, .kind = kind, .addr = addr});
}

void give_on(program *p, uint8_t kind, uint64_t addr, uint32_t stream)
{
    other(p, (tn_event){.type = TN_EV_FREE, .kind = kind, .addr = addr, .stream = stream});
}

void work(program *p, uint32_t stream)
{
    other(p, (tn_event){.type = TN_EV_WORK, .kind = TN_WORK_KERNEL, .stream = stream, .bytes = 1, .aux = JM_START + p->at});
}

void wait_context(program *p)
{
    other(p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_CONTEXT, .aux = JM_START + p->at});
}

void wait_stream(program *p, uint32_t stream)
{
    other(p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_STREAM, .stream = stream, .aux = JM_START + p->at});
}

void record_event(program *p, uint64_t event, uint32_t stream)
{
    other(p, (tn_event){.type = TN_EV_EVENT_RECORD, .addr = event, .stream = stream});
}

void wait_event(program *p, uint64_t event)
{
    other(p, (tn_event){.type = TN_EV_WAIT, .kind = TN_WAIT_EVENT, .addr = event, .aux = JM_START + p->at});
}

void join(program *p, uint64_t event, uint32_t stream)
{
    other(p, (tn_event){.type = TN_EV_STREAM_WAIT, .addr = event, .stream = stream});
}

void written(program *p, uint64_t addr, uint8_t how)
{
    other(p, (tn_event){.type = TN_EV_FIRST_WRITE, .kind = how, .addr = addr});
}

void phase(program *p, uint8_t now)
{
    other(p, (tn_event){.type = TN_EV_PHASE, .kind = now, .aux = p->phase});
    p->phase = now;
}

tn_trace *open_runs(const char *const *names, size_t count)
{
    char message[TN_TRACE_MESSAGE];
    const char *paths[8];
    tn_trace *trace = NULL;
    ck_assert_uint_le(count, 8);
    for (size_t i = 0; i < count; i++)
        paths[i] = scratch_file(names[i]);
    tn_error error = tn_trace_open(paths, count, &trace, message);
    ck_assert_msg(error == TN_OK, "%s", message);
    return trace;
}

tn_trace *open_scratch(void)
{
    return open_runs((const char *const[]){"."}, 1);
}

const tn_life *life(const tn_trace *trace, size_t n)
{
    ck_assert_uint_lt(n, trace->processes[0].life_count);
    return &trace->processes[0].lives[n];
}

tn_plan *plan_with(const tn_trace *t, tn_plan_options options)
{
    char message[TN_PLAN_MESSAGE];
    tn_plan *plan = NULL;
    if (!options.steps)
        options.steps = 1000000;
    tn_error error = tn_plan_make(t, &options, &plan, message);
    ck_assert_msg(error == TN_OK, "%s", message);
    ck_assert_msg(tn_plan_check(plan, message) == TN_OK, "%s", message);
    for (size_t i = 0; i < plan->section_count; i++)
        for (size_t k = 0; k < plan->sections[i].tier_count; k++) {
            const tn_plan_tier *tier = &plan->sections[i].tiers[k];
            ck_assert(tier->lower_bound <= tier->capacity && tier->with_waits <= tier->capacity && tier->shared <= tier->hand_outs);
        }
    return plan;
}

uint64_t excesses(const tn_plan *plan, const tn_trace *t, uint64_t *waits)
{
    tn_verdict v;
    ck_assert_int_eq(tn_verify(plan, t, NULL, NULL, &v), TN_OK);
    uint64_t n = v.excesses;
    if (waits)
        *waits = v.waits;
    ck_assert_uint_gt(v.by_key, 0);
    tn_verdict_free(&v);
    return n;
}

uint64_t address(unsigned n)
{
    return 0x7f0000000000u + (uint64_t)n * 64 * MIB;
}

tn_trace *scratch_run(const char *run, uint32_t pid, uint64_t bytes, unsigned at_once)
{
    program p = program_begin(pid);
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned k = 0; k < at_once; k++)
            take(&p, TN_KIND_DEVICE, 1, address(k), bytes + i % 2 * 512);
        for (unsigned k = 0; k < at_once; k++)
            give(&p, TN_KIND_DEVICE, address(k));
    }
    program_end_in(&p, run, "p");
    return open_runs(&run, 1);
}

tn_trace *two_in_turn(const char *run, int waits)
{
    program p = program_begin(1);
    for (unsigned i = 0; i < 3; i++) {
        for (uint32_t site = 1; site <= 2; site++) {
            take(&p, TN_KIND_DEVICE, site, address(site), 2 * MIB);
            work(&p, 1);
            give(&p, TN_KIND_DEVICE, address(site));
            if (waits)
                wait_stream(&p, 1);
        }
        wait_stream(&p, 1);
    }
    program_end_in(&p, run, "p");
    return open_runs(&run, 1);
}
