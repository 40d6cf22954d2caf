/* What the preload adds to starting a program and ending it: bare and preloaded in turns, wall time and the child's processor time, microseconds.
 * usage: start PRELOAD TURNS NAME PROGRAM [ARGUMENT...] */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/stats.h"

typedef struct cost { double wall, cpu; } cost;

static double us(struct timeval t) { return (double)t.tv_sec * 1e6 + (double)t.tv_usec; }

static cost start(char **argv, char **env)
{
    pid_t pid;
    int status;
    struct rusage used;
    double began = bench_wall_ns();
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, env) != 0 || wait4(pid, &status, 0, &used) != pid || status != 0) {
        fprintf(stderr, "start: %s did not start or failed\n", argv[0]);
        exit(1);
    }
    return (cost){.wall = (bench_wall_ns() - began) / 1e3, .cpu = us(used.ru_utime) + us(used.ru_stime)};
}

static void print(const char *what, const char *kind, const char *clock, double *samples, size_t n)
{
    char name[256];
    snprintf(name, sizeof name, "%s, %s", what, kind);
    bench_print("start", name, "us", clock, samples, n);
}

int main(int argc, char **argv)
{
    size_t turns = argc > 4 ? strtoul(argv[2], NULL, 10) : 0;
    char preload[4200], *path = getenv("PATH"), path_line[4200];
    double *samples[6];
    if (turns == 0 || strlen(argv[1]) > 4096 || !path || strlen(path) > 4096) {
        fprintf(stderr, "usage: start PRELOAD TURNS NAME PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    for (int i = 0; i < 6; i++)
        if ((samples[i] = calloc(turns, sizeof *samples[i])) == NULL)
            return 1;
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1]);
    snprintf(path_line, sizeof path_line, "PATH=%s", path);
    char *bare[] = {path_line, NULL}, *with[] = {path_line, preload, NULL};
    bench_pin(0);
    for (int i = 0; i < 5; i++) {
        start(argv + 4, bare);
        start(argv + 4, with);
    }
    for (size_t i = 0; i < turns; i++) {
        /* Which comes first changes, so that what the one leaves in the caches helps both. */
        cost b, w;
        if (i % 2) {
            w = start(argv + 4, with);
            b = start(argv + 4, bare);
        } else {
            b = start(argv + 4, bare);
            w = start(argv + 4, with);
        }
        samples[0][i] = b.wall, samples[1][i] = w.wall, samples[2][i] = w.wall - b.wall;
        samples[3][i] = b.cpu, samples[4][i] = w.cpu, samples[5][i] = w.cpu - b.cpu;
    }
    static const char *const kinds[] = {"bare", "preloaded", "added"};
    for (int i = 0; i < 6; i++)
        print(argv[3], kinds[i % 3], i < 3 ? "wall" : "cpu", samples[i], turns);
    return 0;
}
