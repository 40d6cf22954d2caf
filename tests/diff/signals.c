/* A profiler's SIGPROF handler that walks the stack, and a SIGSEGV handler that jumps out, while memory comes and goes. */
#include "observe.h"

#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static sigjmp_buf out;
static volatile int *volatile nowhere = (volatile int *)16; /* an address that the compiler does not judge */

static void on_prof(int signal)
{
	void *frames[64];
	(void)signal;
	ticks += backtrace(frames, 64) > 0;
}

static void on_segv(int signal)
{
	siglongjmp(out, signal);
}

int main(void)
{
	void *frames[4], *p[16];
	volatile int bad = 0, jumps = 0;
	backtrace(frames, 4); /* loads the unwinder outside the handler */
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = on_prof;
	action.sa_flags = SA_RESTART;
	obs_code("sigaction", sigaction(SIGPROF, &action, NULL));
	struct itimerval often = {{0, 1000}, {0, 1000}};
	obs_code("init", cudaFree(NULL));
	obs_code("timer", setitimer(ITIMER_PROF, &often, NULL));
	for (int round = 0; round < 100000 && (round < 300 || ticks < 20); round++) {
		for (int i = 0; i < 16; i++)
			bad = bad + (cudaMalloc(&p[i], (size_t)(64 << i)) != cudaSuccess);
		for (int i = 0; i < 16; i++)
			bad = bad + (cudaFree(p[i]) != cudaSuccess);
	}
	memset(&often, 0, sizeof often);
	obs_code("timer.off", setitimer(ITIMER_PROF, &often, NULL));
	obs_code("bad", bad);
	obs_code("ticked", ticks >= 20);
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
