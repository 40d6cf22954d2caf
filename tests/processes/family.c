/*
 * Several processes of a run. "family OTHER": workers forked before CUDA starts, the program itself once more and the program OTHER by exec, and
 * the parent, all at once. "forked_after": a child of a process that has started CUDA, in which no call works, and one that executes the program.
 * "helper": another process of the same run that allocates a little by sites of its own. "leaf N": work and no more.
 */
#include <spawn.h>
#include <sys/wait.h>

#include "work.h"

extern char **environ;

static int leaf(int salt)
{
	cudaStream_t stream;
	int made = (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	return made == 0 && work(stream, salt) == ALL_GOOD ? 0 : 1;
}

static pid_t execute(const char *path, const char *role, int salt)
{
	char number[16];
	char *args[] = {(char *)path, (char *)role, number, NULL};
	pid_t child = -1;
	snprintf(number, sizeof number, "%d", salt);
	return posix_spawn(&child, path, NULL, NULL, args, environ) == 0 ? child : -1;
}

static int ended(pid_t child)
{
	int status = -1;
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int family(const char *self, const char *other)
{
	pid_t children[6];
	for (int i = 0; i < 3; i++)
		if ((children[i] = fork()) == 0)
			exit(leaf(10 * i));
	children[3] = execute(self, "leaf", 50);
	children[4] = execute(other, "leaf", 60);
	obs_code("parent", leaf(90));
	children[5] = execute(self, "leaf", 70); /* of a parent that has started CUDA */
	for (int i = 0; i < 6; i++)
		obs_code("child", ended(children[i]));
	return 0;
}

static int forked_after(const char *self)
{
	obs_code("before", leaf(1));
	pid_t child = fork();
	if (child == 0) {
		void *p = KEPT;
		obs_out("child.malloc", cudaMalloc(&p, MIB), &p);
		obs_last("child.last", cudaSuccess);
		obs_code("child.async", (int)cudaMallocAsync(&p, MIB, NULL));
		obs_code("child.host", (int)cudaMallocHost(&p, MIB));
		execl(self, self, "leaf", "5", (char *)NULL);
		_exit(9);
	}
	obs_code("child", ended(child));
	obs_code("after", leaf(2));
	return 0;
}

static int with_helper(const char *self, const char *helper)
{
	pid_t child = execute(helper, "small", 0);
	obs_code("child", ended(child));
	obs_code("self", leaf(4));
	child = execute(self, "idle", 0); /* the same executable: a context and a free figure, and no planned site */
	obs_code("idle", ended(child));
	return 0;
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "", *other = argc > 2 ? argv[2] : "";
	if (strcmp(role, "leaf") == 0)
		return leaf(atoi(other));
	if (strcmp(role, "small") == 0) {
		void *p = NULL;
		return (int)cudaMalloc(&p, 70000) | (int)cudaMemset(p, 1, 70000) | (int)cudaDeviceSynchronize() | (int)cudaFree(p);
	}
	if (strcmp(role, "idle") == 0) {
		size_t left, total;
		return (int)cudaFree(NULL) | (int)cudaMemGetInfo(&left, &total);
	}
	if (strcmp(role, "family") == 0)
		return family(argv[0], other);
	if (strcmp(role, "forked_after") == 0)
		return forked_after(argv[0]);
	if (strcmp(role, "helper") == 0)
		return with_helper(argv[0], other);
	return 2;
}
