/* Which of the processes still run. */
#define _GNU_SOURCE
#include "report/report_alive.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return 0;
    text[got] = 0;
    return 1;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A process of that number is there, is no zombie, and began before the journal did. What cannot be read counts for it. */
static int is_running(const tn_journal_header *h)
{
    char path[64], text[2048];
    if (h->pid == 0 || (kill((pid_t)h->pid, 0) != 0 && errno == ESRCH))
        return 0;
    snprintf(path, sizeof(path), "/proc/%u/stat", h->pid);
    char *field = read_text(path, text, sizeof(text)) ? strrchr(text, ')') : NULL; /* the name before it may hold anything */
    if (!field || field[1] != ' ')
        return 1;
    field += 2;
    if (*field == 'Z' || *field == 'X')
        return 0;
    for (int i = 3; i < 22; i++) { /* from the state, the third, to the start time */
        field = strchr(field, ' ');
        if (!field)
            return 1;
        field++;
    }
    uint64_t ticks = strtoull(field, NULL, 10), hz = (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t began = ticks / hz * 1000000000u + ticks % hz * 1000000000u / hz;
    /* The start time counts suspended time, the journal's clock does not. Taking off all of it, also what came before the
     * start, makes the process older at most: then a number that was used again counts as running. */
    uint64_t suspended = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    return began <= h->mono_start_ns + suspended + 1000000000u / hz;
}

static int same_process(const tn_journal_header *a, const tn_journal_header *b)
{
    return a->pid == b->pid && a->ppid == b->ppid && memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id)) == 0 &&
           memcmp(a->host, b->host, sizeof(a->host)) == 0;
}

/* A later journal of the same process: the program that it has become by exec. */
static int has_successor(const tn_report *report, const tn_journal_header *h)
{
    for (size_t i = 0; i < report->process_count; i++) {
        const tn_journal_header *other = tn_reader_header(report->processes[i].reader);
        if (same_process(h, other) && other->mono_start_ns > h->mono_start_ns)
            return 1;
    }
    return 0;
}

void tn_alive_mark(tn_report *report)
{
    char boot[sizeof(((tn_journal_header *)0)->boot_id)] = "";
    if (read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)))
        boot[strcspn(boot, "\n")] = 0;
    for (size_t i = 0; i < report->process_count; i++) {
        tn_process *p = &report->processes[i];
        const tn_journal_header *h = tn_reader_header(p->reader);
        if (h->flags & TN_HF_ENDED)
            p->ended = 1;
        else if (h->boot_id[0] && boot[0] && strncmp(h->boot_id, boot, sizeof(boot)) != 0)
            p->ended = 1;
        else
            p->ended = !is_running(h) || has_successor(report, h);
    }
}
