/* Fork, limits, the pipe, and what is made of a reader that does not come to its end. */
#define _GNU_SOURCE
#include "report/report_symbol_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TOLD_NAME = 1, TOLD_FRAMES, TOLD_NAME_STATE, TOLD_LINE_STATE, TOLD_END, PAYLOAD_MAX = 1 << 20, BATCH = 8192 };

typedef struct head {
    uint32_t type, bytes; /* of the payload that follows */
    uint64_t job, i;      /* i: an address, or a state */
} head;

/* ---- the child ---- */

typedef struct teller {
    int fd;
    uint64_t job;
    unsigned char payload[PAYLOAD_MAX]; /* of the message in the making */
    size_t used;
    unsigned char sent[BATCH]; /* whole messages that wait to be sent together: a switch of processes costs more than most of them */
    size_t waiting;
} teller;

static void put(teller *t, const void *from, size_t bytes)
{
    if (bytes <= sizeof(t->payload) - t->used) {
        memcpy(t->payload + t->used, from, bytes);
        t->used += bytes;
    }
}

/* NULL and the empty string are one. */
static void put_string(teller *t, const char *text)
{
    size_t length = text ? strnlen(text, TN_SYMBOL_NAME_MAX) : 0;
    put(t, text, length);
    put(t, "", 1);
}

static void send_all(int fd, const void *from, size_t bytes)
{
    for (const char *at = from; bytes > 0;) {
        ssize_t sent = write(fd, at, bytes);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            _exit(1);
        at += sent;
        bytes -= (size_t)sent;
    }
}

static void flush(teller *t)
{
    send_all(t->fd, t->sent, t->waiting);
    t->waiting = 0;
}

static void tell(teller *t, uint32_t type, uint64_t i)
{
    head h = {.type = type, .bytes = (uint32_t)t->used, .job = t->job, .i = i};
    if (sizeof(h) + t->used > sizeof(t->sent) - t->waiting)
        flush(t);
    if (sizeof(h) + t->used > sizeof(t->sent)) {
        send_all(t->fd, &h, sizeof(h));
        send_all(t->fd, t->payload, t->used);
    } else {
        memcpy(t->sent + t->waiting, &h, sizeof(h));
        memcpy(t->sent + t->waiting + sizeof(h), t->payload, t->used);
        t->waiting += sizeof(h) + t->used;
    }
    t->used = 0;
    if (type == TOLD_END) /* the next module may be its death */
        flush(t);
}

void tn_tell_name(const tn_symbol_job *job, size_t i, const char *name, const char *source, uint64_t delta)
{
    teller *t = job->teller;
    char *function = tn_demangle(name);
    put(t, &delta, sizeof(delta));
    put_string(t, name);
    put_string(t, function);
    put_string(t, source);
    free(function);
    tell(t, TOLD_NAME, i);
}

void tn_tell_frames(const tn_symbol_job *job, size_t i, const tn_symbol_frame *frames, uint32_t count)
{
    teller *t = job->teller;
    put(t, &count, sizeof(count));
    for (uint32_t k = 0; k < count; k++) {
        put(t, &frames[k].line, sizeof(frames[k].line));
        put_string(t, frames[k].function);
        put_string(t, frames[k].file);
    }
    tell(t, TOLD_FRAMES, i);
}

void tn_tell_name_state(const tn_symbol_job *job, tn_symbol_state state)
{
    tell(job->teller, TOLD_NAME_STATE, state);
}

void tn_tell_line_state(const tn_symbol_job *job, tn_symbol_state state)
{
    tell(job->teller, TOLD_LINE_STATE, state);
}

static void limit_child(const tn_symbol_options *options)
{
    unsigned long long data_pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm) {
        if (fscanf(statm, "%*u %*u %*u %*u %*u %llu", &data_pages) != 1)
            data_pages = 0;
        fclose(statm);
    }
    /* Over and above what was inherited: mapped files do not count. */
    struct rlimit data = {0, 0}, core = {0, 0};
    data.rlim_cur = data.rlim_max = data_pages * (unsigned long long)sysconf(_SC_PAGESIZE) + options->debug_bytes + (64u << 20);
    if (data.rlim_cur > options->debug_bytes)
        setrlimit(RLIMIT_DATA, &data);
    setrlimit(RLIMIT_CORE, &core);
    prctl(PR_SET_DUMPABLE, 0); /* a core_pattern that is a pipe does not ask the limit */
}

static void child(const tn_symbol_job *jobs, size_t first, size_t count, int lines, int fd, pid_t parent)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        signal(faults[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    limit_child(jobs->options);
    elf_version(EV_CURRENT);
    teller *t = malloc(sizeof(*t));
    if (!t)
        _exit(1);
    t->fd = fd;
    t->used = t->waiting = 0;
    for (size_t i = first; i < count; i++) {
        tn_symbol_job job = jobs[i];
        job.teller = t;
        t->job = i;
        if (lines)
            tn_symbol_lines(&job);
        else
            tn_symbol_names(&job);
        tell(t, TOLD_END, 0);
    }
    _exit(0);
}

/* ---- the parent ---- */

typedef struct listener {
    const tn_symbol_job *jobs;
    size_t count, next; /* next: the job that the child is at */
    int lines;
    const tn_symbol_answers *answers;
    unsigned char *buffer;
    size_t used, capacity;
} listener;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The next string of a payload, NULL where it is empty; 0 where none ends in it. */
static int take_string(const unsigned char **at, const unsigned char *end, const char **out)
{
    const unsigned char *stop = memchr(*at, 0, (size_t)(end - *at));
    if (!stop)
        return 0;
    *out = stop == *at ? NULL : (const char *)*at;
    *at = stop + 1;
    return 1;
}

static int hear_frames(listener *l, const head *h, const unsigned char *at, const unsigned char *end)
{
    tn_symbol_frame frames[TN_SYMBOL_INLINED_MAX];
    uint32_t count;
    if ((size_t)(end - at) < sizeof(count))
        return 0;
    memcpy(&count, at, sizeof(count));
    at += sizeof(count);
    if (count == 0 || count > TN_SYMBOL_INLINED_MAX)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if ((size_t)(end - at) < sizeof(frames[i].line))
            return 0;
        memcpy(&frames[i].line, at, sizeof(frames[i].line));
        at += sizeof(frames[i].line);
        if (!take_string(&at, end, &frames[i].function) || !take_string(&at, end, &frames[i].file))
            return 0;
    }
    l->answers->frames(l->answers->arg, h->job, h->i, frames, count);
    return 1;
}

/* One message; 0 where it is none that the child's code would send: its memory is not to be trusted any more. */
static int hear(listener *l, const head *h, const unsigned char *at)
{
    const unsigned char *end = at + h->bytes;
    const char *name, *function, *source;
    uint64_t delta;
    if (h->job != l->next)
        return 0;
    switch (h->type) {
    case TOLD_NAME:
        if (h->i >= l->jobs[h->job].count || h->bytes < sizeof(delta))
            return 0;
        memcpy(&delta, at, sizeof(delta));
        at += sizeof(delta);
        if (!take_string(&at, end, &name) || !take_string(&at, end, &function) || !take_string(&at, end, &source) || !source)
            return 0;
        if (name)
            l->answers->name(l->answers->arg, h->job, h->i, name, function, source, delta);
        return 1;
    case TOLD_FRAMES:
        return h->i < l->jobs[h->job].count && hear_frames(l, h, at, end);
    case TOLD_NAME_STATE:
    case TOLD_LINE_STATE:
        if (h->i == TN_SYMBOL_FOUND || h->i >= TN_SYMBOL_STATE_COUNT)
            return 0;
        l->answers->missing(l->answers->arg, h->job, h->type == TOLD_LINE_STATE, (tn_symbol_state)h->i);
        return 1;
    case TOLD_END:
        l->next++;
        return 1;
    default:
        return 0;
    }
}

/* Takes whole messages out of the buffer; 0 where one is wrong. */
static int hear_all(listener *l)
{
    size_t at = 0;
    head h;
    while (l->used - at >= sizeof(h)) {
        memcpy(&h, l->buffer + at, sizeof(h));
        if (h.bytes > PAYLOAD_MAX)
            return 0;
        if (l->used - at - sizeof(h) < h.bytes)
            break;
        if (l->next >= l->count || !hear(l, &h, l->buffer + at + sizeof(h)))
            return 0;
        at += sizeof(h) + h.bytes;
    }
    memmove(l->buffer, l->buffer + at, l->used - at);
    l->used -= at;
    return 1;
}

/* Reads until the child ends, says something wrong, or runs out of time. */
static void listen_to(listener *l, int fd, double deadline)
{
    size_t at_job = l->next;
    double job_deadline = 0;
    l->used = 0;
    for (int first = 1;; first = 0) {
        double time = now();
        if (first || l->next != at_job) {
            double half = l->next + 1 < l->count ? (deadline - time) / 2 : deadline - time;
            job_deadline = time + half;
            at_job = l->next;
        }
        double left = job_deadline - time;
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (left <= 0 || (poll(&ready, 1, (int)(left * 1000) + 1) < 0 && errno != EINTR))
            return;
        if (!(ready.revents & (POLLIN | POLLHUP | POLLERR)))
            continue;
        ssize_t got = read(fd, l->buffer + l->used, l->capacity - l->used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        l->used += (size_t)got;
        if (!hear_all(l))
            return;
    }
}

static void give_up(listener *l, size_t until, tn_symbol_state state)
{
    for (; l->next < until; l->next++)
        l->answers->missing(l->answers->arg, l->next, l->lines, state);
}

void tn_symbol_round(const tn_symbol_job *jobs, size_t count, int lines, double *seconds_left, const tn_symbol_answers *answers)
{
    listener l = {.jobs = jobs, .count = count, .lines = lines, .answers = answers, .capacity = PAYLOAD_MAX + 65536};
    double begun = now(), deadline = begun + *seconds_left;
    l.buffer = malloc(l.capacity);
    while (l.buffer && l.next < count && now() < deadline) {
        int ends[2];
        pid_t self = getpid();
        if (pipe2(ends, O_CLOEXEC) != 0)
            break;
        pid_t reader = fork();
        if (reader == 0) {
            close(ends[0]);
            child(jobs, l.next, count, lines, ends[1], self);
        }
        close(ends[1]);
        if (reader > 0) {
            listen_to(&l, ends[0], deadline);
            kill(reader, SIGKILL);
            while (waitpid(reader, NULL, 0) < 0 && errno == EINTR)
                ;
        }
        close(ends[0]);
        if (reader < 0)
            break;
        if (l.next < count && now() < deadline)
            give_up(&l, l.next + 1, TN_SYMBOL_FAILED); /* the one that it did not survive */
    }
    give_up(&l, count, now() < deadline ? TN_SYMBOL_NO_READER : TN_SYMBOL_TIME);
    free(l.buffer);
    *seconds_left = deadline > now() ? deadline - now() : 0;
}
