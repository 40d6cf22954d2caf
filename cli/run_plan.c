/* A plan binds programs by build-id and script. What is started may also be a launcher, a shell or mpirun, that starts the program: it is let through
 * unless something shows that it is itself what the plan was meant for. */
#define _GNU_SOURCE
#include "cli/run_plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/device_size.h"
#include "cli/option_value.h"
#include "cli/plan_arithmetic.h"
#include "cli/program_identity.h"
#include "ledger/journal_reader.h"
#include "planner/plan_json.h"

static int is_fill(const char *text)
{
    char *end;
    unsigned long byte = strtoul(text, &end, 0);
    return strcmp(text, "zero") == 0 || (*text >= '0' && *text <= '9' && !*end && byte <= 255);
}

int tn_run_plan_option(tn_run_plan *p, const char *command, int option, const char *value)
{
    int code;
    switch (option) {
    case TN_OPT_PLAN:
        p->path = value;
        return 0;
    case TN_OPT_MISFIT:
        p->misfit_native = 1;
        return strcmp(value, "native") == 0 ? 0 : cli_fail(command, "--misfit takes native, not %s", value);
    case TN_OPT_BUDGET:
        code = cli_size(command, "--budget", value, &p->budget);
        return code >= 0 ? code : p->budget ? 0 : cli_fail(command, "--budget 0 holds nothing");
    case TN_OPT_FREE_WAITS:
        p->free_waits = 1;
        return 0;
    case TN_OPT_CANARY:
        p->canary = 1;
        return 0;
    case TN_OPT_POISON:
        p->poison = 1;
        return 0;
    case TN_OPT_PIN_REGIONS:
        p->pin_regions = 1;
        return 0;
    case TN_OPT_FILL:
        p->fill = value;
        return is_fill(value) ? 0 : cli_fail(command, "--fill takes zero or a byte from 0 to 255, not %s", value);
    default:
        return -1;
    }
}

int tn_run_plan_open(tn_run_plan *p, const char *command)
{
    char message[TN_PLAN_MESSAGE];
    if (tn_plan_read(p->path, &p->plan, message) != TN_OK)
        return cli_fail(command, "%s", message);
    if (!realpath(p->path, p->absolute))
        return cli_fail(command, "%s: %s", p->path, strerror(errno));
    return -1;
}

void tn_run_plan_free(tn_run_plan *p)
{
    tn_plan_free(p->plan);
    p->plan = NULL;
}

int tn_run_plan_environment(const tn_run_plan *p)
{
    char budget[32];
    int failed = 0;
    if (!p)
        return unsetenv("TENURE_PLAN") == 0 ? 0 : errno;
    snprintf(budget, sizeof budget, "%" PRIu64, p->budget);
    failed |= setenv("TENURE_PLAN", p->absolute, 1);
    if (p->strict)
        failed |= setenv("TENURE_STRICT", "1", 1);
    if (p->free_waits)
        failed |= setenv("TENURE_FREE_WAITS", "1", 1);
    if (p->canary)
        failed |= setenv("TENURE_CANARY", "1", 1);
    if (p->poison)
        failed |= setenv("TENURE_POISON", "1", 1);
    if (p->fill)
        failed |= setenv("TENURE_FILL", p->fill, 1);
    if (p->pin_regions)
        failed |= setenv("TENURE_PIN_REGIONS", "1", 1);
    if (p->misfit_native)
        failed |= setenv("TENURE_MISFIT", "native", 1);
    if (p->budget)
        failed |= setenv("TENURE_BUDGET", budget, 1);
    return failed ? ENOMEM : 0;
}

/* ---- is it the program? ---- */

/* A sentence that keeps the program from starting; with --misfit native a warning. -1, or the exit code. */
static int misfit(const tn_run_plan *p, const char *command, int quiet, int code, const char *format, ...) __attribute__((format(printf, 5, 6)));
static int misfit(const tn_run_plan *p, const char *command, int quiet, int code, const char *format, ...)
{
    char text[PATH_MAX + 1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!p->misfit_native) {
        cli_fail(command, "%s", text);
        return code;
    }
    if (!quiet)
        cli_warn(command, "%s; it runs unplaced", text);
    return -1;
}

/* 1 where the section is of that executable, on whatever device and with whatever script. */
static int is_executable(const tn_plan_section *s, const tn_program_identity *who)
{
    const char *slash = strrchr(who->exe, '/');
    if (s->exe_build_id[0] || who->build_id[0])
        return strcmp(s->exe_build_id, who->build_id) == 0;
    return strcmp(s->exe, slash ? slash + 1 : who->exe) == 0;
}

static int is_script(const tn_plan_section *s, const tn_program_identity *who)
{
    return s->script && who->script ? strcmp(s->script, who->script) == 0 : s->script == who->script;
}

/* Whether the section binds the program that is started. */
static int is_of(const tn_plan_section *s, const tn_program_identity *who)
{
    return is_executable(s, who) && is_script(s, who);
}

/* -1, with *bound: the plan names the program itself; or the exit code. */
static int check_program(const tn_run_plan *p, const char *command, int quiet, const tn_program_identity *who, int *bound)
{
    const char *slash = strrchr(who->exe, '/'), *name = slash ? slash + 1 : who->exe;
    const tn_plan_section *same_name = NULL, *interpreter = NULL;
    *bound = 0;
    for (size_t i = 0; i < p->plan->section_count; i++) {
        const tn_plan_section *s = &p->plan->sections[i];
        if (is_of(s, who))
            *bound = 1;
        else if (is_executable(s, who))
            interpreter = s;
        else if (strcmp(s->exe, name) == 0 && is_script(s, who))
            same_name = s;
    }
    if (*bound)
        return -1;
    if (same_name)
        return misfit(p, command, quiet, TN_EXIT_USAGE, "%s is for another build of %s: the plan's has the build-id %.16s, this one %.16s", p->path, name,
                      same_name->exe_build_id[0] ? same_name->exe_build_id : "(none)", who->build_id[0] ? who->build_id : "(none)");
    if (who->uses_cuda && !interpreter)
        return misfit(p, command, quiet, TN_EXIT_USAGE, "%s is for another program: it names %s, and not %s, which uses CUDA itself", p->path,
                      p->plan->section_count ? p->plan->sections[0].exe : "none", name);
    if (!quiet)
        cli_warn(command, "%s names no %s%s%s: only what that starts may be served by it", p->path, name, who->script ? " " : "", who->script ? who->script : "");
    return -1;
}

/* ---- does it fit? ---- */

static int check_section(const tn_run_plan *p, const char *command, int quiet, const tn_plan_section *s, const tn_device_size *devices, int count)
{
    char what[256];
    uint64_t limit = p->budget ? p->budget : p->plan->budget;
    snprintf(what, sizeof what, "the budget of %" PRIu64 " bytes", limit);
    if (limit == 0)
        limit = UINT64_MAX;
    if (count >= 0 && s->device >= (uint32_t)count)
        return misfit(p, command, quiet, TN_EXIT_FALLS_SHORT, "%s is for device %u, and there %s %d", p->path, s->device, count == 1 ? "is" : "are", count);
    if (count >= 0 && devices[s->device].total < limit) {
        limit = devices[s->device].total;
        snprintf(what, sizeof what, "device %u (%.100s), which has %" PRIu64, s->device, devices[s->device].name, limit);
    }
    if (s->total <= limit)
        return -1;
    int code = misfit(p, command, quiet, TN_EXIT_FALLS_SHORT, "%s needs %" PRIu64 " bytes for %s, %" PRIu64 " more than %s", p->path, s->total, s->exe,
                      s->total - limit, what);
    if (code >= 0)
        tn_plan_arithmetic(command, s, limit, stderr);
    return code;
}

int tn_run_plan_check(const tn_run_plan *p, const char *command, int quiet, const char *file, char **argv)
{
    static tn_device_size devices[TN_DEVICES];
    static tn_program_identity who;
    const char *why;
    int bound;
    tn_program_identify(file, argv, &who);
    int code = check_program(p, command, quiet, &who, &bound);
    if (code >= 0)
        return code;
    int count = tn_device_sizes(devices, &why);
    if (count < 0 && !quiet)
        cli_warn(command, "whether the plan fits the device is not known: %s", why);
    for (size_t i = 0; i < p->plan->section_count && code < 0; i++)
        if (!bound || is_of(&p->plan->sections[i], &who))
            code = check_section(p, command, quiet, &p->plan->sections[i], devices, count);
    return code;
}

/* ---- was it? ---- */

typedef struct bound_count { const tn_run_plan *p; unsigned processes, bound, served; } bound_count;

static int binds(const tn_plan *plan, const tn_journal_header *h)
{
    char text[TN_PROGRAM_SCRIPT];
    const char *script = tn_program_script(h->exe, h->cmdline, sizeof h->cmdline, text, sizeof text) ? text : NULL;
    for (size_t i = 0; i < plan->section_count; i++) {
        uint32_t device = plan->sections[i].device;
        if (tn_plan_section_for(plan, h->exe_build_id, script, device) || (!h->exe_build_id[0] && tn_plan_section_named(plan, h->exe, script, device)))
            return 1;
    }
    return 0;
}

/* Whether the journal holds memory of a tier, which comes with the first planned call. */
static int was_served(const char *path)
{
    tn_reader *reader;
    const tn_event *e = NULL;
    if (tn_reader_open(path, &reader) != TN_OK)
        return 1; /* which is said elsewhere */
    while ((e = tn_reader_next(reader, NULL)) && e->type != TN_EV_ARENA)
        ;
    tn_reader_close(reader);
    return e != NULL;
}

static void count_bound(void *arg, const char *path, const tn_journal_header *h)
{
    bound_count *c = arg;
    int is_bound = h && binds(c->p->plan, h);
    c->processes += h != NULL;
    c->bound += (unsigned)is_bound;
    c->served += is_bound && (c->served || was_served(path));
}

void tn_run_plan_report(const tn_run_plan *p, const char *command, const tn_run_folder *folder)
{
    bound_count c = {.p = p};
    if (tn_run_folder_each(folder, count_bound, &c) != 0 || !c.processes)
        return;
    if (!c.bound)
        cli_warn(command, "%s names %s that used CUDA: nothing was served by it", p->path, c.processes == 1 ? "not the process" : "none of the processes");
    else if (!c.served)
        cli_warn(command, "nothing was served by %s, which names %u of the processes that used CUDA: they made no planned call, or it could not be loaded", p->path, c.bound);
}
