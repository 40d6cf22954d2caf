/* Runtime hooks that belong to one copy of the runtime: what dlsym on an explicit handle hands out, so that a call goes to
 * the copy it was looked up in, whoever makes it (through ctypes the caller is libffi). Made at build time for
 * TN_CUDARTS copies; no code is written at run time. */
#include "shim/hooks.h"
#include "shim/real.h"
#include "shim/record.h"

#define TN_COPY 0
#include "shim/hooks_bound.def"
#undef TN_COPY
#define TN_COPY 1
#include "shim/hooks_bound.def"
#undef TN_COPY
#define TN_COPY 2
#include "shim/hooks_bound.def"
#undef TN_COPY
#define TN_COPY 3
#include "shim/hooks_bound.def"
#undef TN_COPY
#define TN_COPY 4
#include "shim/hooks_bound.def"
#undef TN_COPY
#define TN_COPY 5
#include "shim/hooks_bound.def"
#undef TN_COPY
#define TN_COPY 6
#include "shim/hooks_bound.def"
#undef TN_COPY
#define TN_COPY 7
#include "shim/hooks_bound.def"
#undef TN_COPY
_Static_assert(TN_CUDARTS == 8, "one inclusion a copy");

#define TN_ROW(copy, name) (void *)TN_BOUND(copy, name)
#define TN_RUNTIME(klass, variant, name, ...)                                                                               \
    [TN_API_##name] = {TN_ROW(0, name), TN_ROW(1, name), TN_ROW(2, name), TN_ROW(3, name), TN_ROW(4, name), TN_ROW(5, name), \
                       TN_ROW(6, name), TN_ROW(7, name)},
static void *const bound[TN_API_COUNT][TN_CUDARTS] = {
#include "shim/api_runtime.def"
};

void *tn_cudart_bound(int k, int api) { return bound[api][k]; }
