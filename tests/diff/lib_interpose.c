/* libinterpose.so: another tool's dlsym, which looks at each name, counts CUDA's, and goes on to the next dlsym. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *(*dlsym_fn)(void *, const char *);

static unsigned long seen;

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
	static dlsym_fn next;
	if (next == NULL) {
		next = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		if (next == NULL)
			next = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
		if (next == NULL)
			next = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
		if (next == NULL)
			abort();
	}
	seen += strncmp(name, "cu", 2) == 0;
	return next(handle, name);
}

__attribute__((visibility("default"))) int interposer_saw(void);
int interposer_saw(void) { return seen > 0; }
