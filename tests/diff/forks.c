/* fork without exec before and after CUDA has started, fork and exec with and without the environment, vfork-like spawn. */
#include "observe.h"

#include <spawn.h>
#include <sys/wait.h>

static int ended(pid_t child)
{
	int status = -1;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void child_calls(const char *who)
{
	char k[64];
	void *p = KEPT;
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	size_t f, t;
	snprintf(k, sizeof k, "%s.malloc", who);
	obs_out(k, cudaMalloc(&p, 100), &p);
	snprintf(k, sizeof k, "%s.last", who);
	obs_last(k, cudaSuccess);
	snprintf(k, sizeof k, "%s.driver", who);
	obs_out(k, cuMemAlloc(&d, 100), &d);
	snprintf(k, sizeof k, "%s.query", who);
	obs_code(k, cudaMemGetInfo(&f, &t));
	snprintf(k, sizeof k, "%s.count", who);
	int n = -1;
	obs_code(k, cudaGetDeviceCount(&n));
	snprintf(k, sizeof k, "%s.free", who);
	obs_code(k, cudaFree(p == KEPT ? NULL : p));
}

static void forked(const char *who, int leave)
{
	char k[64];
	pid_t child = fork();
	if (child == 0) {
		child_calls(who);
		if (leave)
			_exit(7);
		exit(8);
	}
	snprintf(k, sizeof k, "%s.ended", who);
	obs_code(k, ended(child));
}

static void executed(const char *who, char *const environment[])
{
	char k[64];
	char *args[] = {(char *)"forks", (char *)who, NULL};
	pid_t child = -1;
	int code = posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environment);
	snprintf(k, sizeof k, "%s.spawned", who);
	obs(k, "%d,%d", code, code == 0 ? ended(child) : -1);
}

static void *forks_on_thread(void *arg)
{
	forked(arg, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	extern char **environ;
	void *p;
	char path[4096];
	if (argc > 1) {
		child_calls(argv[1]);
		return 9;
	}
	snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s", getenv("LD_LIBRARY_PATH") != NULL ? getenv("LD_LIBRARY_PATH") : "");
	char *filtered[] = {path, NULL};
	forked("before", 0);
	forked("before._exit", 1);
	executed("exec.before", environ);
	obs_last("malloc", cudaMalloc(&p, MIB));
	forked("after", 0);
	forked("after._exit", 1);
	on_thread(forks_on_thread, (void *)(uintptr_t)"after.thread");
	executed("exec.after", environ);
	executed("exec.filtered", filtered);
	obs_last("parent.memset", (int)cudaMemset(p, 1, MIB) | (int)cudaDeviceSynchronize());
	obs_last("parent.free", cudaFree(p));
	return 0;
}
