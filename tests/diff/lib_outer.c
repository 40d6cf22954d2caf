/* libouter.so: has a RUNPATH of its own ($ORIGIN/inner) and opens a library there by its bare name. */
#include <dlfcn.h>
#include <stdio.h>

void *outer_open(void);

void *outer_open(void)
{
	void *h = dlopen("libsibling.so", RTLD_NOW | RTLD_LOCAL);
	if (h == NULL) {
		printf("sibling=%s\n", dlerror());
		fflush(stdout);
	}
	return h;
}
