/* The element types that a KV cache is kept in. */
#include <string.h>

#include "planner/demand.h"

static const struct {
    const char *name;
    unsigned bits;  /* of one element */
    unsigned group; /* elements that share a scale of one byte; 0: none */
    tn_dtype half;
} dtypes[TN_DTYPES] = {
    [TN_DTYPE_F32] = {"f32", 32, 0, TN_DTYPE_F16},
    [TN_DTYPE_F16] = {"f16", 16, 0, TN_DTYPE_FP8},
    [TN_DTYPE_BF16] = {"bf16", 16, 0, TN_DTYPE_FP8},
    [TN_DTYPE_FP8] = {"fp8", 8, 0, TN_DTYPE_FP4},
    [TN_DTYPE_FP8_E4M3] = {"fp8_e4m3", 8, 0, TN_DTYPE_FP4},
    [TN_DTYPE_FP8_E5M2] = {"fp8_e5m2", 8, 0, TN_DTYPE_FP4},
    [TN_DTYPE_INT8] = {"int8", 8, 0, TN_DTYPE_INT4},
    [TN_DTYPE_FP4] = {"fp4", 4, 0, TN_DTYPES},
    [TN_DTYPE_INT4] = {"int4", 4, 0, TN_DTYPES},
    [TN_DTYPE_NVFP4] = {"nvfp4", 4, 16, TN_DTYPES},
};

const char *tn_dtype_name(tn_dtype dtype) { return (unsigned)dtype < TN_DTYPES ? dtypes[dtype].name : "unknown"; }

tn_dtype tn_dtype_find(const char *name)
{
    int i = 0;
    while (i < TN_DTYPES && strcmp(dtypes[i].name, name) != 0)
        i++;
    return (tn_dtype)i;
}

tn_dtype tn_dtype_half(tn_dtype dtype) { return (unsigned)dtype < TN_DTYPES ? dtypes[dtype].half : TN_DTYPES; }

bool tn_dtype_vector_bytes(tn_dtype dtype, uint64_t head_dim, uint64_t *bytes)
{
    uint64_t bits, scales = 0;
    if ((unsigned)dtype >= TN_DTYPES || __builtin_mul_overflow(head_dim, (uint64_t)dtypes[dtype].bits, &bits))
        return false;
    if (dtypes[dtype].group)
        scales = head_dim / dtypes[dtype].group + (head_dim % dtypes[dtype].group != 0);
    *bytes = bits / 8 + (bits % 8 != 0) + scales;
    return true;
}
