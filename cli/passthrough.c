/* Pipes and pseudo-terminals between the program and our own standard streams, a thread for each, so that neither stream waits for the
 * other and no flag of a file that others share is changed. */
#define _GNU_SOURCE
#include "cli/passthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "ledger/journal.h"

static int is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Whether two descriptors are one open file: else what is written through one may stand before what the other wrote. */
static int is_same(int a, int b)
{
    struct stat x, y;
    if (fstat(a, &x) != 0 || fstat(b, &y) != 0 || x.st_dev != y.st_dev || x.st_ino != y.st_ino || x.st_rdev != y.st_rdev)
        return 0;
    long different = syscall(SYS_kcmp, getpid(), getpid(), 0 /* KCMP_FILE */, a, b);
    return different == 0 || (different < 0 && (errno == EPERM || errno == ENOSYS)) || isatty(a);
}

/* Our terminal's settings, but nothing done to the output: our own terminal does that already. */
static void copy_settings(int from, int slave)
{
    struct termios t;
    struct winsize size;
    if (tcgetattr(from, &t) == 0 || tcgetattr(slave, &t) == 0) {
        t.c_oflag &= (tcflag_t)~OPOST;
        t.c_lflag &= (tcflag_t) ~(ECHO | ECHONL);
        tcsetattr(slave, TCSANOW, &t);
    }
    if (ioctl(from, TIOCGWINSZ, &size) == 0)
        ioctl(slave, TIOCSWINSZ, &size);
}

static int open_terminal(tn_passage *s)
{
    char name[128];
    s->here = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s->here < 0 || grantpt(s->here) != 0 || unlockpt(s->here) != 0 || ptsname_r(s->here, name, sizeof(name)) != 0)
        return errno;
    s->program = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s->program < 0)
        return errno;
    s->is_tty = 1;
    copy_settings(s->to, s->program);
    return 0;
}

static int open_pipe(tn_passage *s)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    s->here = ends[0];
    s->program = ends[1];
    return 0;
}

/* None of ours may be one of the standard streams, even where those were closed. */
static int raise_fd(int *fd)
{
    if (*fd < 0 || *fd > 2)
        return 0;
    int raised = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    if (raised < 0)
        return errno;
    close(*fd);
    *fd = raised;
    return 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int tn_passthrough_open(tn_passthrough *p, int pty, tn_line_fn line, void *arg)
{
    int error = 0, open_here[2] = {is_open(1), is_open(2)};
    *p = (tn_passthrough){.each = {{.program = -1, .here = -1, .to = 1}, {.program = -1, .here = -1, .to = 2}}, .stop = {-1, -1}, .pty = pty, .line = line, .arg = arg};
    p->each[0].both = open_here[0] && open_here[1] && is_same(1, 2);
    for (int i = 0; i < 2 && !error; i++) {
        tn_passage *s = &p->each[i];
        s->of = p;
        if (!open_here[i] || (i == 1 && p->each[0].both))
            continue;
        error = isatty(s->to) || (pty && i == 0) ? open_terminal(s) : open_pipe(s);
        if (!error)
            error = raise_fd(&s->here);
        if (!error)
            error = raise_fd(&s->program);
    }
    if (!error && pipe2(p->stop, O_CLOEXEC) != 0)
        error = errno;
    for (int i = 0; i < 2 && !error; i++)
        error = raise_fd(&p->stop[i]);
    for (int i = 0; error && i < 2; i++) {
        close_end(&p->each[i].here);
        close_end(&p->each[i].program);
        close_end(&p->stop[i]);
    }
    return error;
}

int tn_passthrough_child(const tn_passthrough *p)
{
    for (int i = 0; i < 2; i++) {
        const tn_passage *s = &p->each[i];
        if (s->program < 0)
            continue;
        if (dup2(s->program, s->to) < 0 || (s->both && dup2(s->program, 2) < 0))
            return errno;
    }
    return 0;
}

static void see_line(tn_passage *s, uint64_t tsc)
{
    s->line[s->used] = 0;
    if (s->used && s->of->line)
        s->of->line(s->of->arg, s->line, tsc);
    s->used = 0;
}

/* A carriage return ends a line too: progress bars. */
static void see_bytes(tn_passage *s, const char *bytes, size_t count, uint64_t tsc)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            see_line(s, tsc);
            continue;
        }
        s->line[s->used++] = bytes[i] ? bytes[i] : ' ';
        if (s->used == sizeof(s->line) - 1)
            see_line(s, tsc);
    }
}

static int pass_bytes(int to, const char *bytes, size_t left)
{
    while (left) {
        ssize_t n = write(to, bytes, left);
        if (n > 0) {
            bytes += n;
            left -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) { /* somebody made our stream non-blocking */
            struct pollfd p = {.fd = to, .events = POLLOUT};
            poll(&p, 1, 1000);
        } else if (!(n < 0 && errno == EINTR)) {
            return -1;
        }
    }
    return 0;
}

/* Reads once and passes on. 0 at the end, or where our own reader is gone: then the program is to find that out at its next write. */
static int pass_once(tn_passage *s)
{
    char bytes[65536];
    ssize_t n = read(s->here, bytes, sizeof(bytes));
    uint64_t tsc = tn_stamp();
    if (n < 0 && errno == EINTR)
        return 1;
    if (n <= 0) /* a terminal whose program has gone says EIO */
        return 0;
    /* The lines first: what they trigger is not to wait for a slow reader. */
    see_bytes(s, bytes, (size_t)n, tsc);
    return pass_bytes(s->to, bytes, (size_t)n) == 0;
}

static void *pass(void *arg)
{
    tn_passage *s = arg;
    struct pollfd p[2] = {{.fd = s->here, .events = POLLIN}, {.fd = s->of->stop[0], .events = POLLIN}};
    for (;;) {
        if (poll(p, 2, -1) < 0)
            continue;
        if (p[0].revents) {
            if (!pass_once(s))
                break;
        } else if (p[1].revents) {
            return NULL; /* nothing more is there now */
        }
    }
    see_line(s, tn_stamp());
    s->at_end = 1;
    close_end(&s->here);
    return NULL;
}

int tn_passthrough_start(tn_passthrough *p)
{
    int error = 0;
    signal(SIGPIPE, SIG_IGN); /* our reader's going is an answer of write */
    for (int i = 0; i < 2; i++)
        close_end(&p->each[i].program);
    for (int i = 0; i < 2 && !error; i++) {
        tn_passage *s = &p->each[i];
        if (s->here < 0)
            continue;
        error = pthread_create(&s->thread, NULL, pass, s);
        s->running = !error;
    }
    return error;
}

void tn_passthrough_tick(tn_passthrough *p, pid_t program)
{
    int changed = 0;
    for (int i = 0; i < 2; i++) {
        struct winsize ours, theirs;
        const tn_passage *s = &p->each[i];
        if (!s->is_tty || s->here < 0 || ioctl(s->to, TIOCGWINSZ, &ours) != 0 || ioctl(s->here, TIOCGWINSZ, &theirs) != 0 ||
            memcmp(&ours, &theirs, sizeof(ours)) == 0)
            continue;
        ioctl(s->here, TIOCSWINSZ, &ours);
        changed = 1;
    }
    /* It had the signal from our terminal before its own knew the size. */
    if (changed && program > 0)
        kill(program, SIGWINCH);
}

/* Stays behind for the program's children that still write. */
static void stay_behind(tn_passthrough *p)
{
    pid_t pid = fork();
    if (pid != 0)
        return;
    setsid();
    p->line = NULL;
    close_end(&p->stop[1]);
    close_end(&p->stop[0]);
    struct pollfd each[2];
    for (;;) {
        int open_streams = 0;
        for (int i = 0; i < 2; i++) {
            each[i] = (struct pollfd){.fd = p->each[i].here, .events = POLLIN};
            open_streams += p->each[i].here >= 0;
        }
        if (!open_streams)
            _exit(0);
        if (poll(each, 2, -1) < 0)
            continue;
        for (int i = 0; i < 2; i++)
            if (each[i].revents && !pass_once(&p->each[i]))
                close_end(&p->each[i].here);
    }
}

void tn_passthrough_finish(tn_passthrough *p)
{
    int left = 0;
    close_end(&p->stop[1]); /* readable for both threads from now on */
    for (int i = 0; i < 2; i++) {
        tn_passage *s = &p->each[i];
        if (s->running)
            pthread_join(s->thread, NULL);
        s->running = 0;
        left += s->here >= 0 && !s->at_end;
    }
    if (left)
        stay_behind(p);
    for (int i = 0; i < 2; i++)
        close_end(&p->each[i].here);
    close_end(&p->stop[0]);
}
