/* Mean time of starting a program, with and without LD_PRELOAD, in turns so that a busy machine slows both. Prints the two means and the
 * middle one of the differences, in microseconds. usage: bench_start PRELOAD TURNS PROGRAM */
#define _GNU_SOURCE
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/shim/prog.h"

static double start(char *program, char **env)
{
    struct timespec a, b;
    char *argv[] = {program, NULL};
    pid_t pid;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &a);
    MUST(posix_spawn(&pid, program, NULL, NULL, argv, env) == 0);
    MUST(waitpid(pid, &status, 0) == pid && status == 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    char preload[4200];
    MUST(argc == 4);
    int turns = atoi(argv[2]);
    double *differences = calloc((size_t)turns, sizeof *differences), bare = 0, with = 0;
    MUST(turns > 0 && differences != NULL);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1]);
    char *none[] = {NULL}, *set[] = {preload, NULL};
    for (int i = 0; i < turns; i++) {
        double b = start(argv[3], none), w = start(argv[3], set);
        bare += b / turns;
        with += w / turns;
        differences[i] = w - b;
    }
    qsort(differences, (size_t)turns, sizeof *differences, ascending);
    printf("bare=%.0f with=%.0f mean_cost=%.0f median_cost=%.0f\n", bare, with, with - bare, differences[turns / 2]);
    return 0;
}
