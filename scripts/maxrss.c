/*
 * maxrss FILE COMMAND...: runs COMMAND, writes its peak resident memory in
 * bytes to FILE, and exits as COMMAND did (128 + signal where one ended it).
 * The figure is that of the largest process among COMMAND and those of its
 * descendants that were waited for. One thread, no state.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what)
{
	fprintf(stderr, "maxrss: %s: %s\n", what, strerror(errno));
	return 127;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("usage: maxrss FILE COMMAND...\n", stderr);
		return 2;
	}
	pid_t child = fork();
	if (child < 0)
		return fail("fork");
	if (child == 0) {
		execvp(argv[2], argv + 2);
		_exit(fail(argv[2]));
	}

	int status;
	struct rusage usage;
	while (wait4(child, &status, 0, &usage) < 0) {
		if (errno != EINTR)
			return fail("wait4");
	}
	FILE *out = fopen(argv[1], "w");
	if (!out)
		return fail(argv[1]);
	/* The kernel counts in KiB. */
	fprintf(out, "%lld\n", (long long)usage.ru_maxrss * 1024);
	if (fclose(out) != 0)
		return fail(argv[1]);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
