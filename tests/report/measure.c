/* measure FILE COMMAND...: runs COMMAND and writes what it and its children cost to FILE: "WALL_MS CPU_MS ANON_KIB". Anonymous memory is
 * the highest sum over all of them that was met, looked at every 5 ms, since no counter of the kernel keeps its peak. Exits
 * with the command's exit code. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned long anon_of(long pid)
{
    char path[64], line[256];
    unsigned long kib = 0;
    snprintf(path, sizeof(path), "/proc/%ld/status", pid);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof(line), in))
        if (sscanf(line, "RssAnon: %lu", &kib) == 1)
            break;
    if (in)
        fclose(in);
    return kib;
}

static unsigned long anon_of_tree(long pid, int depth)
{
    char path[64];
    unsigned long sum = anon_of(pid);
    long child;
    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, pid); /* commands that have one thread */
    FILE *in = depth < 4 ? fopen(path, "r") : NULL;
    while (in && fscanf(in, "%ld", &child) == 1)
        sum += anon_of_tree(child, depth + 1);
    if (in)
        fclose(in);
    return sum;
}

static long ms(struct timeval t)
{
    return t.tv_sec * 1000 + t.tv_usec / 1000;
}

int main(int argc, char **argv)
{
    struct timespec begun, ended;
    struct rusage usage;
    unsigned long most = 0;
    int status;
    if (argc < 3)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (pid < 0)
        return 2;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        unsigned long now = anon_of_tree(pid, 0);
        if (now > most)
            most = now;
        usleep(5000);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    getrusage(RUSAGE_CHILDREN, &usage);
    FILE *out = fopen(argv[1], "w");
    if (!out)
        return 2;
    fprintf(out, "%ld %ld %lu\n", (long)((ended.tv_sec - begun.tv_sec) * 1000 + (ended.tv_nsec - begun.tv_nsec) / 1000000),
            ms(usage.ru_utime) + ms(usage.ru_stime), most);
    fclose(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
