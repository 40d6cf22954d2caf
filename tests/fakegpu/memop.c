/* Stream memory operations: wait and write of words, alone and in batches. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>

static CUresult submit(CUstream h, const CUstreamBatchMemOpParams *ops, unsigned n, unsigned flags, int pt)
{
    struct fk_stream *s;
    if (ops == NULL || n == 0 || n > 256 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    FK_STREAM_PT(h, pt, &s);
    for (unsigned i = 0; i < n; i++) {
        CUdeviceptr p = ops[i].waitValue.address;
        bool wide = ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || ops[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        bool word = wide || ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || ops[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_32;
        if (word && (p % (wide ? 8 : 4) != 0 || fk_block_at(p) == NULL))
            return CUDA_ERROR_INVALID_VALUE;
    }
    void *copy = malloc(n * sizeof *ops);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, ops, n * sizeof *ops);
    struct fk_work w = {.type = FK_W_MEMOP, .u.memop = {copy, n, flags}, .owned = copy};
    return fk_submit(s, &w, NULL);
}

static CUresult one(CUstream h, CUstreamBatchMemOpType op, CUdeviceptr p, uint64_t value, unsigned flags, int pt)
{
    CUstreamBatchMemOpParams q;
    memset(&q, 0, sizeof q);
    q.operation = op;
    q.waitValue.address = p;
    q.waitValue.value64 = value;
    q.waitValue.flags = flags;
    return submit(h, &q, 1, 0, pt);
}

#define WORD(name, op, type)                                                                     \
    FK_API_PT(name, name##_ptsz, (CUstream h, CUdeviceptr p, type v, unsigned flags),            \
              one(h, CU_STREAM_MEM_OP_##op, p, v, flags, PT))                                    \
    FK_API_PT(name##_v2, name##_v2_ptsz, (CUstream h, CUdeviceptr p, type v, unsigned flags),    \
              one(h, CU_STREAM_MEM_OP_##op, p, v, flags, PT))
WORD(cuStreamWaitValue32, WAIT_VALUE_32, cuuint32_t)
WORD(cuStreamWaitValue64, WAIT_VALUE_64, cuuint64_t)
WORD(cuStreamWriteValue32, WRITE_VALUE_32, cuuint32_t)
WORD(cuStreamWriteValue64, WRITE_VALUE_64, cuuint64_t)
FK_API_PT(cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz, (CUstream h, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags),
          submit(h, ops, n, flags, PT))
FK_API_PT(cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz,
          (CUstream h, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags), submit(h, ops, n, flags, PT))
