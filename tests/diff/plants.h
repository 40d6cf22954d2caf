/*
 * Faults planted into a build of libtenure.so that only tests see (TN_PLANTS names this header, see shim/plant.h). TN_PLANT in
 * the environment chooses one by name; without it this build behaves as any other, which the test checks first. The faults
 * take the place of real driver functions behind the hooks, once, before anything is called, but for the one of the marks. Included by
 * shim/driver.c, and by shim/short.c with TN_PLANTS_OF_MARKS.
 */
#ifndef TESTS_DIFF_PLANTS_H
#define TESTS_DIFF_PLANTS_H

#include <stdlib.h>
#include <string.h>

#include "shim/api.h"
#include "shim/real.h"

static int plant_is(const char *name)
{
	const char *chosen = getenv("TN_PLANT");
	return chosen && strcmp(chosen, name) == 0;
}

#ifdef TN_PLANTS_OF_MARKS
/* unmarked_work: a launch or copy that goes the short way while a plan serves is taken for told to the marks. */
#define tn_plant_mark(t)                    \
	do {                                \
		if (plant_is("unmarked_work")) { \
			(t)->work.tick = tick; \
			return 1;           \
		}                           \
	} while (0)
#else

#define PLANT_SHIFT 256u

static tn_driver_functions plant_real; /* as they were */

/* wrong_code: out of memory under another number. */
static CUresult plant_wrong_code(CUdeviceptr *p, size_t bytes)
{
	CUresult r = plant_real.cuMemAlloc_v2(p, bytes);
	return r == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_ERROR_INVALID_VALUE : r;
}

/* lost_error: a free that fails says that it did not. */
static CUresult plant_lost_error(CUdeviceptr p)
{
	plant_real.cuMemFree_v2(p);
	return CUDA_SUCCESS;
}

/* extra_wait: an allocation that waits for the device. */
static CUresult plant_extra_wait(CUdeviceptr *p, size_t bytes)
{
	plant_real.cuCtxSynchronize();
	return plant_real.cuMemAlloc_v2(p, bytes);
}

/* stray_context: a query without a context makes one. */
static CUresult plant_stray_context(size_t *free_bytes, size_t *total)
{
	CUcontext c;
	if (plant_real.cuCtxGetCurrent(&c) == CUDA_SUCCESS && !c && plant_real.cuDevicePrimaryCtxRetain(&c, 0) == CUDA_SUCCESS)
		plant_real.cuCtxSetCurrent(c);
	return plant_real.cuMemGetInfo_v2(free_bytes, total);
}

/* small_alignment: blocks begin 256 bytes later than the driver's. */
static CUresult plant_shifted_alloc(CUdeviceptr *p, size_t bytes)
{
	CUresult r = plant_real.cuMemAlloc_v2(p, bytes && bytes < SIZE_MAX - PLANT_SHIFT ? bytes + PLANT_SHIFT : bytes);
	if (r == CUDA_SUCCESS)
		*p += PLANT_SHIFT;
	return r;
}

static CUresult plant_shifted_free(CUdeviceptr p)
{
	return plant_real.cuMemFree_v2(p ? p - PLANT_SHIFT : p);
}

static inline void tn_plant_functions(tn_driver_functions *real)
{
	plant_real = *real;
	if (plant_is("wrong_code"))
		real->cuMemAlloc_v2 = plant_wrong_code;
	if (plant_is("lost_error"))
		real->cuMemFree_v2 = plant_lost_error;
	if (plant_is("extra_wait"))
		real->cuMemAlloc_v2 = plant_extra_wait;
	if (plant_is("stray_context"))
		real->cuMemGetInfo_v2 = plant_stray_context;
	if (plant_is("small_alignment")) {
		real->cuMemAlloc_v2 = plant_shifted_alloc;
		real->cuMemFree_v2 = plant_shifted_free;
	}
}

/* missed_variant: the resolver's per-thread variants lead to the hooks of the legacy stream's. */
static inline void tn_plant_variant(int *api)
{
	static const char suffix[] = "_ptsz";
	char name[128];
	const char *full = tn_api_rows[*api].name;
	size_t n = strlen(full), tail = sizeof suffix - 1;
	if (!plant_is("missed_variant") || n <= tail || n >= sizeof name || strcmp(full + n - tail, suffix) != 0)
		return;
	memcpy(name, full, n - tail);
	name[n - tail] = 0;
	if (tn_api_find(name) != TN_API_NONE)
		*api = tn_api_find(name);
}

#endif
#endif
