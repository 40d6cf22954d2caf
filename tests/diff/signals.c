/* A profiler's SIGPROF handler that walks the stack while memory comes and goes, and a SIGSEGV handler that jumps out of the
   program's own code between the calls: a jump out of a call could leave the driver's locks taken. The profiler stops itself
   after some ticks, since a card's driver may begin a call anew each time it is interrupted. */
#include "observe.h"

#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#define TICKS 5
#define MOST_SECONDS 8

static volatile sig_atomic_t ticks;
static pthread_t walked; /* the only thread whose stack is walked: not one of the driver's own */
static sigjmp_buf out;
static volatile int *volatile nowhere = (volatile int *)16; /* an address that the compiler does not judge */

static void on_prof(int signal)
{
	static const struct itimerval never;
	void *frames[64];
	(void)signal;
	if (pthread_equal(pthread_self(), walked))
		ticks += backtrace(frames, 64) > 0;
	if (ticks >= TICKS)
		setitimer(ITIMER_PROF, &never, NULL);
}

static void on_segv(int signal)
{
	siglongjmp(out, signal);
}

int main(void)
{
	void *frames[4], *p[8];
	volatile int bad = 0, jumps = 0;
	backtrace(frames, 4); /* loads the unwinder outside the handler */
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = on_prof;
	action.sa_flags = SA_RESTART;
	obs_code("sigaction", sigaction(SIGPROF, &action, NULL));
	struct itimerval often = {{0, 5000}, {0, 5000}};
	time_t begun = time(NULL);
	walked = pthread_self();
	obs_code("init", cudaFree(NULL));
	obs_code("timer", setitimer(ITIMER_PROF, &often, NULL));
	for (int round = 0; round < 20 || (ticks < TICKS && time(NULL) - begun < MOST_SECONDS); round++) {
		for (int i = 0; i < 8; i++)
			bad = bad + (cudaMalloc(&p[i], (size_t)64 << 2 * i) != cudaSuccess);
		for (int i = 0; i < 8; i++)
			bad = bad + (cudaFree(p[i]) != cudaSuccess);
	}
	memset(&often, 0, sizeof often);
	obs_code("timer.off", setitimer(ITIMER_PROF, &often, NULL));
	obs_code("bad", bad);
	obs_code("ticked", ticks >= TICKS);
	action.sa_handler = on_segv;
	action.sa_flags = SA_NODEFER;
	obs_code("sigaction.segv", sigaction(SIGSEGV, &action, NULL));
	for (volatile int i = 0; i < 5; i++) {
		int signal = sigsetjmp(out, 1);
		if (signal != 0) {
			jumps += signal == SIGSEGV;
			continue;
		}
		bad = bad + (cudaMalloc(&p[i], 100) != cudaSuccess);
		*nowhere = 1;
	}
	obs_code("jumps", jumps);
	for (int i = 0; i < 5; i++)
		bad = bad + (cudaFree(p[i]) != cudaSuccess);
	obs_code("bad.2", bad);
	struct sigaction now;
	sigaction(SIGSEGV, NULL, &now);
	obs_code("handler_kept", now.sa_handler == on_segv);
	obs_last("end", cudaDeviceSynchronize());
	return 0;
}
