/* The names that a census looks for: every function of the shim's one table (shim/api_*.def) that takes or gives back memory,
 * and the codebase's own wrappers, named by the user. Versions and stream variants (cuMemAlloc_v2, cudaFreeAsync_ptsz) count
 * under the name that a source writes. A tn_apis owns its names until it is freed; once filled it is constant, any thread reads it. */
#ifndef TENURE_CENSUS_APIS_H
#define TENURE_CENSUS_APIS_H

#include <stddef.h>

typedef struct tn_apis tn_apis;

typedef enum tn_api_use { TN_USE_ALLOC, TN_USE_FREE, TN_USE_COUNT } tn_api_use;

#define TN_API_MISSING ((size_t)-1)

/* NULL when no memory is left. */
tn_apis *tn_apis_new(void);
void tn_apis_free(tn_apis *apis);

/* Adds a function or macro by its bare name. 0; 1 where `name` is no identifier; -1 when no memory is left. A name that is there
 * already stays what it is. */
int tn_apis_add(tn_apis *apis, const char *name, tn_api_use use);

/* The index of an identifier of the source, or TN_API_MISSING. */
size_t tn_apis_find(const tn_apis *apis, const char *name, size_t length);

size_t tn_apis_count(const tn_apis *apis);
const char *tn_apis_name(const tn_apis *apis, size_t api);
tn_api_use tn_apis_use(const tn_apis *apis, size_t api);
int tn_apis_is_wrapper(const tn_apis *apis, size_t api); /* named by the user, not of CUDA's */

#endif
