#define _GNU_SOURCE
#include "bench/slices.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/stats.h"

#define REPETITIONS 61
#define WARM_UP 3
#define SLICES 15 /* of a repetition */

typedef struct worker {
    pthread_t thread;
    unsigned number;
    double figures[REPETITIONS]; /* ns an operation */
    double sum;
} worker;

static const bench_slices *measured;
static pthread_barrier_t barrier;
static double clock_cost; /* of one reading, taken out of each slice */

void bench_must(int ok, const char *message)
{
    if (ok)
        return;
    fprintf(stderr, "bench: %s\n", message);
    exit(1);
}

static double measure_clock(void)
{
    double least = 1e9;
    for (int i = 0; i < 1000; i++) {
        double from = bench_cpu_ns(), to = bench_cpu_ns();
        least = to - from < least ? to - from : least;
    }
    return least;
}

static double one_slice(void *state)
{
    if (measured->before != NULL)
        measured->before(state);
    double from = bench_cpu_ns();
    measured->slice(state);
    double spent = bench_cpu_ns() - from - clock_cost;
    return spent / (double)measured->operations;
}

static void *work(void *arg)
{
    worker *w = arg;
    bench_pin(w->number);
    void *state = measured->begin(w->number);
    for (int i = -WARM_UP; i < REPETITIONS; i++) {
        double slices[SLICES];
        pthread_barrier_wait(&barrier);
        for (int k = 0; k < SLICES; k++)
            slices[k] = one_slice(state);
        if (i < 0)
            continue;
        for (int k = 0; k < SLICES; k++)
            w->sum += slices[k];
        w->figures[i] = bench_quantile(slices, SLICES, 0.5);
    }
    if (measured->end != NULL)
        measured->end(state);
    return NULL;
}

void bench_slices_run(const bench_slices *what, unsigned threads)
{
    static worker workers[BENCH_THREADS_MAX];
    static double figures[BENCH_THREADS_MAX * REPETITIONS];
    measured = what;
    clock_cost = measure_clock();
    bench_must(threads >= 1 && threads <= BENCH_THREADS_MAX, "as many threads as there are not");
    bench_must(pthread_barrier_init(&barrier, NULL, threads) == 0, "no barrier");
    size_t count = 0;
    double sum = 0;
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (worker){.number = i};
        bench_must(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "no thread");
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        for (int k = 0; k < REPETITIONS; k++)
            figures[count++] = workers[i].figures[k];
        sum += workers[i].sum;
    }
    pthread_barrier_destroy(&barrier);
    char target[32] = "null";
    if (what->target > 0)
        snprintf(target, sizeof target, "%g", what->target);
    printf("{\"group\":\"tiers\",\"case\":\"%s\",\"allocator\":\"%s\",\"target\":%s,\"threads\":%u,\"unit\":\"ns\",\"clock\":\"cpu\",\"median\":%.2f,\"p10\":%.2f,"
           "\"p90\":%.2f,\"mean\":%.2f,\"repetitions\":%zu,\"slices\":%zu,\"operations\":%zu}\n",
           what->name, what->allocator, target, threads, bench_quantile(figures, count, 0.5), bench_quantile(figures, count, 0.1),
           bench_quantile(figures, count, 0.9), sum / (double)(count * SLICES), count, count * SLICES, what->operations);
    fflush(stdout);
}
