/* Starts the recorded program, forwards signals, waits. */
#define _GNU_SOURCE
#include "cli/record_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* And every real-time signal. Not those by which a terminal or a shell stops and continues a whole job, nor what a fault of this process raises. */
static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGWINCH,
                                SIGTTIN, SIGTTOU, SIGURG,  SIGIO,   SIGPWR,  SIGTRAP, SIGSTKFLT};

/* A pipe whose ends are none of the standard streams, even where those were closed. */
static int make_pipe(int ends[2])
{
    int raw[2];
    if (pipe2(raw, O_CLOEXEC) != 0)
        return errno;
    int error = 0;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, 3);
        if (ends[i] < 0)
            error = errno;
        close(raw[i]);
    }
    return error;
}

static void forward(pid_t child, int signal, const siginfo_t *info)
{
    /* What the terminal sends (si_code above 0) goes to the whole foreground group: the program has it already. A timer that our caller set
     * before it executed us is ours alone. */
    int is_timer = signal == SIGALRM || signal == SIGVTALRM || signal == SIGPROF;
    if (info->si_code > 0) {
        if (is_timer)
            kill(child, signal);
        return;
    }
    if (info->si_pid == child) /* it signalled its own group */
        return;
    if (info->si_code == SI_QUEUE)
        (void)sigqueue(child, signal, info->si_value);
    else
        kill(child, signal);
}

static int wait_for(pid_t child, const sigset_t *awaited, const tn_spawn_hooks *hooks)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int status, ticks = hooks->tick != NULL;
    for (;;) {
        siginfo_t info;
        int signal = ticks ? sigtimedwait(awaited, &info, &pause) : sigwaitinfo(awaited, &info);
        if (signal < 0) {
            if (ticks)
                ticks = hooks->tick(hooks->arg) == 0;
            continue;
        }
        if (signal != SIGCHLD) {
            forward(child, signal, &info);
            continue;
        }
        pid_t got = waitpid(child, &status, WNOHANG);
        if (got == child)
            return status;
    }
}

int tn_record_spawn(char **argv, const tn_spawn_hooks *hooks, int *wait_status)
{
    int ends[2];
    int error = make_pipe(ends);
    if (error)
        return error;
    sigset_t awaited, before;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        sigaddset(&awaited, forwarded[i]);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
        sigaddset(&awaited, signal);
    /* Blocked before the fork, so that a signal between fork and wait is neither lost nor ends us first. */
    sigprocmask(SIG_BLOCK, &awaited, &before);
    /* With SIGCHLD ignored, an inherited habit of some parents, the exit status would be lost. */
    struct sigaction plain = {.sa_handler = SIG_DFL}, inherited;
    sigaction(SIGCHLD, &plain, &inherited);
    pid_t child = fork();
    if (child < 0) {
        error = errno;
    } else if (child == 0) {
        sigaction(SIGCHLD, &inherited, NULL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        error = hooks->in_child ? hooks->in_child(hooks->arg) : 0;
        if (!error) {
            execvp(argv[0], argv);
            error = errno;
        }
        ssize_t sent = write(ends[1], &error, sizeof(error));
        _exit(sent == (ssize_t)sizeof(error) ? 126 : 127);
    }
    close(ends[1]);
    if (child > 0) {
        int failed = hooks->started ? hooks->started(hooks->arg, child) : 0;
        if (failed)
            kill(child, SIGKILL);
        *wait_status = wait_for(child, &awaited, hooks);
        if (read(ends[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
            error = failed;
    }
    close(ends[0]);
    sigaction(SIGCHLD, &inherited, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}
