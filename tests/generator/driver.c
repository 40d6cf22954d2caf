/* Finds the driver's functions in the two ways that programs use. */
#include "tests/generator/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct driver drivers[2];

/* Some names have a younger variant with other parameters than the header's: the version that means the header's
   gives the same address as its symbol. */
static const int versions[] = {13000, 12000, 11030, 4000};
#define VERSIONS (sizeof versions / sizeof versions[0])

typedef CUresult (*resolver)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* The header's own suffix: cuMemAlloc_v2 is asked for as cuMemAlloc. */
static void base_name(const char *symbol, char *out, size_t size)
{
	snprintf(out, size, "%s", symbol);
	char *suffix = strstr(out, "_v");
	if (suffix != NULL)
		*suffix = '\0';
}

static int load_one(void *libcuda, resolver resolve, const char *symbol, void **by_symbol, void **by_resolver)
{
	char base[96];
	base_name(symbol, base, sizeof base);
	*by_symbol = dlsym(libcuda, symbol);
	for (size_t i = 0; i < VERSIONS && *by_symbol != NULL; i++) {
		*by_resolver = NULL;
		resolve(base, by_resolver, versions[i], CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL);
		if (*by_resolver == *by_symbol)
			return 0;
	}
	fprintf(stderr, "generated: the driver has no %s (%s)\n", symbol, *by_symbol == NULL ? "dlsym" : "cuGetProcAddress");
	return -1;
}

/* The headers rename; expanding first gives the exported name. */
#define EXPANDED(name) #name
#define SYMBOL_NAME(name) EXPANDED(name)

int driver_load(void)
{
	void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (libcuda == NULL) {
		fprintf(stderr, "generated: %s\n", dlerror());
		return -1;
	}
	resolver resolve;
	*(void **)&resolve = dlsym(libcuda, "cuGetProcAddress_v2");
	if (resolve == NULL) {
		fprintf(stderr, "generated: the driver has no cuGetProcAddress_v2\n");
		return -1;
	}
	int failed = 0;
#define LOAD(name) \
	do { \
		void *found[2]; \
		failed |= load_one(libcuda, resolve, SYMBOL_NAME(name), &found[0], &found[1]); \
		memcpy(&drivers[0].p_##name, &found[0], sizeof found[0]); \
		memcpy(&drivers[1].p_##name, &found[1], sizeof found[1]); \
	} while (0);
	DRIVER_FUNCTIONS(LOAD)
	return failed;
}
