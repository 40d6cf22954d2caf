/* What the tests of a plan's figures share: one program, its trace, and the one section of the plan made of it. A file's own. */
#ifndef TENURE_TESTS_PLANNER_PLAN_FIGURES_H
#define TENURE_TESTS_PLANNER_PLAN_FIGURES_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/planner/plan_test.h"

#define DEVICE TN_KIND_DEVICE
#define ASYNC TN_KIND_ASYNC
#define PINNED TN_KIND_PINNED

static program p;
static tn_trace *t;
static tn_plan *plan;
static const tn_plan_section *section;

static inline void begin(void)
{
    scratch_make();
    p = program_begin(1);
}

static inline void end(void)
{
    tn_plan_free(plan);
    tn_trace_free(t);
    scratch_remove();
}

static inline void plan_it(tn_plan_options options)
{
    program_end(&p, "one");
    t = open_scratch();
    plan = plan_with(t, options);
    ck_assert_uint_eq(plan->section_count, 1);
    section = &plan->sections[0];
    ck_assert_uint_eq(excesses(plan, t, NULL), 0);
}

static inline const tn_plan_row *row_of(uint32_t site)
{
    const tn_plan_row *row = tn_plan_row_of(section, 0x1000 + site, 0);
    ck_assert_ptr_nonnull(row);
    return row;
}

static inline const tn_plan_tier *tier_of(tn_discipline d, tn_family f)
{
    for (size_t i = 0; i < section->tier_count; i++)
        if (section->tiers[i].discipline == d && section->tiers[i].family == f)
            return &section->tiers[i];
    ck_abort_msg("there is no tier %s for %s memory", tn_discipline_name(d), tn_family_name(f));
    return NULL;
}

static inline void is(uint32_t site, tn_discipline d)
{
    ck_assert_msg(row_of(site)->discipline == d, "site %u is %s: %s", site, tn_discipline_name(row_of(site)->discipline), row_of(site)->reason);
}

static inline void pinned(uint32_t site, unsigned place, uint64_t bytes, uint64_t flags)
{
    other(&p, (tn_event){.type = TN_EV_ALLOC, .kind = PINNED, .site = TN_SITE_FIRST + site, .addr = address(place), .bytes = bytes, .aux2 = flags});
}

/* Scratch: taken and given `rounds` times. */
static inline void comes_and_goes(uint32_t site, unsigned place, uint64_t bytes, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        take(&p, DEVICE, site, address(place), bytes);
        give(&p, DEVICE, address(place));
    }
}

#endif
