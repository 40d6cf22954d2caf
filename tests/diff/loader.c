/*
 * `loader HOW`: a program without a runtime of its own opens a plug-in that has one, by HOW: local, global, deepbind (the
 * plug-in's own scope first), runpath (a library in inner/ that opens its sibling by bare name, found by its RUNPATH).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "local";
	int runpath = strcmp(how, "runpath") == 0, rounds;
	int flags = strcmp(how, "global") == 0 ? RTLD_GLOBAL : strcmp(how, "deepbind") == 0 ? RTLD_LOCAL | RTLD_DEEPBIND : RTLD_LOCAL;
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
	path[n > 0 ? n : 0] = 0;
	strcpy(strrchr(path, '/'), runpath ? "/libouter.so" : "/libwork.so");
	for (rounds = 0; rounds < 3; rounds++) {
		void *h = dlopen(path, RTLD_NOW | flags);
		printf("open=%s\n", h != NULL ? "yes" : dlerror());
		fflush(stdout);
		if (h == NULL)
			return 9;
		void *(*open_inner)(void) = (void *(*)(void))dlsym(h, "outer_open");
		void *inner = runpath ? open_inner() : h;
		int (*work)(const char *) = inner != NULL ? (int (*)(const char *))dlsym(inner, "work_alloc") : NULL;
		int (*fails)(const char *) = inner != NULL ? (int (*)(const char *))dlsym(inner, "work_fails") : NULL;
		printf("found=%d,%d\n", work != NULL, fails != NULL);
		fflush(stdout);
		if (work == NULL || fails == NULL)
			return 9;
		work("work");
		printf("fails=%d\n", fails("work.refused"));
		printf("missing=%d\n", dlsym(h, "cudaNoSuchFunction") != NULL);
		printf("dlerror=%s\n", dlerror() != NULL ? "set" : "none");
		printf("program_sees_cudaMalloc=%d\n", dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL);
		printf("close=%d\n", (inner != h ? dlclose(inner) : 0) | dlclose(h));
		fflush(stdout);
	}
	return 0;
}
