#define _GNU_SOURCE
#include "bench/stats.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double bench_cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
double bench_wall_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

int bench_pin(unsigned n)
{
    /* The cores allowed at the first call: a thread that is pinned already hands its own small set on to the threads it makes. */
    static cpu_set_t allowed;
    static int known;
    if (!known && sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return -1;
    known = 1;
    int chosen = -1;
    for (int core = CPU_SETSIZE - 1; core >= 0; core--) {
        if (!CPU_ISSET(core, &allowed))
            continue;
        chosen = core;
        if (n-- == 0)
            break;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    if (chosen < 0)
        return -1;
    CPU_SET(chosen, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0 ? chosen : -1;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double bench_quantile(double *samples, size_t n, double q)
{
    if (n == 0)
        return NAN;
    qsort(samples, n, sizeof *samples, ascending);
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;
    double above = below + 1 < n ? samples[below + 1] : samples[below];
    return samples[below] + (above - samples[below]) * (at - (double)below);
}

void bench_print(const char *group, const char *name, const char *unit, const char *clock, double *samples, size_t n)
{
    if (n == 0) /* no figure is no JSON number */
        return;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += samples[i];
    (void)bench_quantile(samples, n, 0); /* sorts */
    printf("{\"group\":\"%s\",\"case\":\"%s\",\"unit\":\"%s\",\"clock\":\"%s\",\"median\":%.2f,\"min\":%.2f,\"p10\":%.2f,\"p90\":%.2f,"
           "\"mean\":%.2f,\"samples\":%zu}\n",
           group, name, unit, clock, bench_quantile(samples, n, 0.5), samples[0], bench_quantile(samples, n, 0.1), bench_quantile(samples, n, 0.9),
           sum / (double)n, n);
    fflush(stdout);
}
