/* `dies HOW`: allocates, then ends by HOW; exit code and signal are the observation. */
#include "observe.h"

#include <signal.h>
#include <sys/resource.h>

static void *block;
static volatile int *volatile nowhere = (volatile int *)8; /* an address that the compiler does not judge */

static void at_exit(void)
{
	size_t f = 0, t = 0;
	obs_code("at_exit.query", cudaMemGetInfo(&f, &t));
	obs_code("at_exit.free", cudaFree(block));
}

static void *leaves(void *arg)
{
	(void)arg;
	exit(6);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct rlimit none = {0, 0};
	setrlimit(RLIMIT_CORE, &none);
	atexit(at_exit);
	obs_code("malloc", cudaMalloc(&block, MIB));
	obs_code("memset", cudaMemset(block, 1, MIB));
	if (strcmp(how, "return") == 0)
		return 3;
	if (strcmp(how, "exit") == 0)
		exit(4);
	if (strcmp(how, "_exit") == 0)
		_exit(5);
	if (strcmp(how, "thread") == 0)
		on_thread(leaves, NULL);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "term") == 0)
		raise(SIGTERM);
	if (strcmp(how, "segv") == 0)
		*nowhere = 1;
	obs("how", "unknown %s", how);
	return 1;
}
