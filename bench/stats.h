/* What the benchmarks share: clocks, a fixed core, and one way of stating a result (median, least, 10th and 90th percentile, mean; one
 * JSON object a line). The mean also tells what comes rarely and costs much, such as a new chunk of the journal. No state of its own but
 * the set of allowed cores, read at the first bench_pin(); samples belong to the caller. Any thread, each with its own samples. */
#ifndef TENURE_BENCH_STATS_H
#define TENURE_BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds of processor time of the calling thread: what a busy machine's other programs cannot lengthen. */
double bench_cpu_ns(void);
/* Nanoseconds of CLOCK_MONOTONIC. */
double bench_wall_ns(void);

/* Keeps the calling thread (and threads it makes later) on the n-th of the cores it may run on, counted from the last. A machine
 * with fewer cores gives its first one. Returns the core's number, -1 where the system refuses. The first call is made before
 * other threads are. */
int bench_pin(unsigned n);

/* Sorts the samples. `q` from 0 to 1; no sample gives NaN. */
double bench_quantile(double *samples, size_t n, double q);

/* One line on stdout: {"group":..,"case":..,"unit":..,"clock":..,"median":..,"min":..,"p10":..,"p90":..,"mean":..,"samples":..}. Sorts the samples. The
 * texts must need no escaping. */
void bench_print(const char *group, const char *name, const char *unit, const char *clock, double *samples, size_t n);

#endif
