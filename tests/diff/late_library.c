/* A library loaded at run time, built as a plug-in: its constructor allocates, its destructor frees, at dlclose and at exit. */
#include "observe.h"

#include <dlfcn.h>

static void load(const char *key, int keep)
{
	char path[512], k[64];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
	path[n > 0 ? n : 0] = 0;
	strcpy(strrchr(path, '/'), "/liblate.so");
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	snprintf(k, sizeof k, "%s.open", key);
	obs(k, "%s", h != NULL ? "yes" : dlerror());
	if (h == NULL)
		return;
	int (*count)(void) = (int (*)(void))dlsym(h, "late_count");
	snprintf(k, sizeof k, "%s.count", key);
	obs_code(k, count != NULL ? count() : -1);
	if (!keep) {
		snprintf(k, sizeof k, "%s.close", key);
		obs_code(k, dlclose(h));
	}
}

int main(void)
{
	void *p;
	load("first", 0);
	obs_last("malloc", cudaMalloc(&p, 100));
	load("second", 0);
	load("third", 1);
	obs_last("free", cudaFree(p));
	obs("dlerror", "%s", dlerror() != NULL ? "set" : "none");
	return 0;
}
