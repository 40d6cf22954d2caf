#include "shim/serve_reach.h"

#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_calls.h"
#include "shim/serve_pending.h"
#include "shim/short.h"

static int fits(uint64_t start, uint64_t extent, uint64_t address, uint64_t bytes)
{
    uint64_t offset = address - start;
    return bytes <= extent && offset <= extent - bytes;
}

/* Whether all of it lies in one of the blocks that this thread has lately met. Of memory that is mapped a copy may take several at once. */
static inline __attribute__((always_inline)) int is_in_known(const tn_written *known, unsigned count, uint64_t address, uint64_t bytes)
{
    for (unsigned i = 0; i < count; i++)
        if (tn_ledger_is_written(&known[i], address)) return fits(known[i].start, known[i].bytes, address, bytes);
    return 0;
}

int rec_copy_reads(const tn_thread *t, uint64_t src, uint64_t bytes)
{
    return is_in_known(t->written, TN_WRITTEN, src, bytes) || is_in_known(t->read, TN_READ, src, bytes) || !tn_serve_owns(src);
}

int tn_serve_reaches(tn_hook_frame *f, uint64_t address, uint64_t bytes)
{
    tn_thread *t = f->thread;
    tn_entry block;
    tn_written found = {0};
    if (!tn_serving || !tn_serve_may_own(address)) return 1;
    if (!f->nested && (is_in_known(t->written, TN_WRITTEN, address, bytes) || is_in_known(t->read, TN_READ, address, bytes))) return 1;
    if (tn_ledger_find_at(TN_SPACE_ADDRESS, address, &block, &found)) {
        if (!f->nested) {
            for (unsigned i = TN_READ - 1; i; i--) t->read[i] = t->read[i - 1];
            t->read[0] = found;
        }
        return !tn_is_served(&block) || fits(block.addr, block.bytes, address, bytes);
    }
    if (!tn_serve_owns(address)) return 1;
    return tn_serve_pending_find(address, &block) && fits(block.addr, block.bytes, address, bytes);
}

/* ---- calls that say only by the address whether memory is the host's or the device's. The driver takes what it does not know for the host's, and
 * comes to grief there: so these are refused here. */

static int is_other(tn_hook_frame *f, CUdeviceptr address, size_t bytes)
{
    if (!bytes || !tn_serve_may_own(address)) return 0;
    int was = f->thread->busy; /* as own code of ours; put back before the driver is called */
    f->thread->busy = 1;
    int other = !tn_serve_reaches(f, address, bytes);
    *f->thread->error = f->errno_in;
    f->thread->busy = was;
    return other;
}

static CUresult refusal(void)
{
    CUresult lost = tn_serve_lost();
    return lost != CUDA_SUCCESS ? lost : CUDA_ERROR_INVALID_VALUE;
}

CUresult tn_serve_cuMemcpy(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, CUdeviceptr, size_t), CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    return is_other(f, dst, bytes) || is_other(f, src, bytes) ? refusal() : call(dst, src, bytes);
}

CUresult tn_serve_cuMemcpyAsync(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, CUdeviceptr, size_t, CUstream), CUdeviceptr dst, CUdeviceptr src,
                                size_t bytes, CUstream stream)
{
    return is_other(f, dst, bytes) || is_other(f, src, bytes) ? refusal() : call(dst, src, bytes, stream);
}

/* A side of a copy of rows: where it begins and how far it reaches. */
typedef struct side { uint64_t first, bytes; } side;

static side extent(CUdeviceptr base, size_t x, size_t y, size_t z, size_t pitch, size_t rows, size_t width, size_t height, size_t depth)
{
    side s = {0, 0};
    if (!width || !height || !depth) return s;
    if (!pitch) pitch = x + width;
    if (!rows) rows = y + height;
    s.first = base + (z * rows + y) * pitch + x;
    s.bytes = ((depth - 1) * rows + height - 1) * pitch + width;
    return s;
}

/* 1: the call is refused. A side that is named as the device's gets an address that the driver refuses itself. */
static int look_at(tn_hook_frame *f, CUmemorytype type, CUdeviceptr *address, side s)
{
    if ((type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED) || !is_other(f, s.first, s.bytes)) return 0;
    *address = TN_NO_ADDRESS;
    return type == CU_MEMORYTYPE_UNIFIED;
}

static int is_2d_refused(tn_hook_frame *f, CUDA_MEMCPY2D *c)
{
    size_t w = c->WidthInBytes, h = c->Height;
    return look_at(f, c->dstMemoryType, &c->dstDevice, extent(c->dstDevice, c->dstXInBytes, c->dstY, 0, c->dstPitch, 0, w, h, 1)) ||
           look_at(f, c->srcMemoryType, &c->srcDevice, extent(c->srcDevice, c->srcXInBytes, c->srcY, 0, c->srcPitch, 0, w, h, 1));
}

/* A copy between peers, or of a device alone: the fields that are looked at have the same names. */
#define TN_3D_IS_REFUSED(f, c)                                                                                                                      \
    (look_at(f, (c)->dstMemoryType, &(c)->dstDevice, extent((c)->dstDevice, (c)->dstXInBytes, (c)->dstY, (c)->dstZ, (c)->dstPitch, (c)->dstHeight,   \
                                                            (c)->WidthInBytes, (c)->Height, (c)->Depth)) ||                                        \
     look_at(f, (c)->srcMemoryType, &(c)->srcDevice, extent((c)->srcDevice, (c)->srcXInBytes, (c)->srcY, (c)->srcZ, (c)->srcPitch, (c)->srcHeight,   \
                                                            (c)->WidthInBytes, (c)->Height, (c)->Depth)))

CUresult tn_serve_cuMemcpy2D_v2(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY2D *), const CUDA_MEMCPY2D *copy)
{
    if (!copy) return call(copy);
    CUDA_MEMCPY2D c = *copy;
    return is_2d_refused(f, &c) ? refusal() : call(&c);
}

CUresult tn_serve_cuMemcpy2DAsync_v2(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY2D *, CUstream), const CUDA_MEMCPY2D *copy, CUstream stream)
{
    if (!copy) return call(copy, stream);
    CUDA_MEMCPY2D c = *copy;
    return is_2d_refused(f, &c) ? refusal() : call(&c, stream);
}

CUresult tn_serve_cuMemcpy3D_v2(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY3D *), const CUDA_MEMCPY3D *copy)
{
    if (!copy) return call(copy);
    CUDA_MEMCPY3D c = *copy;
    return TN_3D_IS_REFUSED(f, &c) ? refusal() : call(&c);
}

CUresult tn_serve_cuMemcpy3DAsync_v2(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY3D *, CUstream), const CUDA_MEMCPY3D *copy, CUstream stream)
{
    if (!copy) return call(copy, stream);
    CUDA_MEMCPY3D c = *copy;
    return TN_3D_IS_REFUSED(f, &c) ? refusal() : call(&c, stream);
}

CUresult tn_serve_cuMemcpy3DPeer(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY3D_PEER *), const CUDA_MEMCPY3D_PEER *copy)
{
    if (!copy) return call(copy);
    CUDA_MEMCPY3D_PEER c = *copy;
    return TN_3D_IS_REFUSED(f, &c) ? refusal() : call(&c);
}

CUresult tn_serve_cuMemcpy3DPeerAsync(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY3D_PEER *, CUstream), const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
    if (!copy) return call(copy, stream);
    CUDA_MEMCPY3D_PEER c = *copy;
    return TN_3D_IS_REFUSED(f, &c) ? refusal() : call(&c, stream);
}

/* ---- many copies in one call: all of them, or none */

static size_t first_refused(tn_hook_frame *f, const CUdeviceptr *dst, const CUdeviceptr *src, const size_t *bytes, size_t count)
{
    for (size_t i = 0; dst && src && bytes && i < count; i++)
        if (is_other(f, dst[i], bytes[i]) || is_other(f, src[i], bytes[i])) return i;
    return count;
}

CUresult tn_serve_cuMemcpyBatchAsync(tn_hook_frame *f,
                                     CUresult (*call)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, size_t *, CUstream),
                                     CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t count, CUmemcpyAttributes *attributes, size_t *of,
                                     size_t attribute_count, size_t *failed, CUstream stream)
{
    size_t i = first_refused(f, dst, src, bytes, count);
    if (i == count) return call(dst, src, bytes, count, attributes, of, attribute_count, failed, stream);
    if (failed) *failed = i;
    return refusal();
}

CUresult tn_serve_cuMemcpyBatchAsync_v2(tn_hook_frame *f,
                                        CUresult (*call)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, CUstream),
                                        CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t count, CUmemcpyAttributes *attributes, size_t *of,
                                        size_t attribute_count, CUstream stream)
{
    return first_refused(f, dst, src, bytes, count) == count ? call(dst, src, bytes, count, attributes, of, attribute_count, stream) : refusal();
}

/* The lengths of an operand are of its format's elements, whose size is not said for memory without one: its first byte is looked at. */
static int is_operand_refused(tn_hook_frame *f, const CUmemcpy3DOperand *o) { return o->type == CU_MEMCPY_OPERAND_TYPE_POINTER && is_other(f, o->op.ptr.ptr, 1); }

static size_t first_3d_refused(tn_hook_frame *f, const CUDA_MEMCPY3D_BATCH_OP *each, size_t count)
{
    for (size_t i = 0; each && i < count; i++)
        if (is_operand_refused(f, &each[i].dst) || is_operand_refused(f, &each[i].src)) return i;
    return count;
}

CUresult tn_serve_cuMemcpy3DBatchAsync(tn_hook_frame *f, CUresult (*call)(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream), size_t count,
                                       CUDA_MEMCPY3D_BATCH_OP *each, size_t *failed, unsigned long long flags, CUstream stream)
{
    size_t i = first_3d_refused(f, each, count);
    if (i == count) return call(count, each, failed, flags, stream);
    if (failed) *failed = i;
    return refusal();
}

CUresult tn_serve_cuMemcpy3DBatchAsync_v2(tn_hook_frame *f, CUresult (*call)(size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream), size_t count,
                                          CUDA_MEMCPY3D_BATCH_OP *each, unsigned long long flags, CUstream stream)
{
    return first_3d_refused(f, each, count) == count ? call(count, each, flags, stream) : refusal();
}

/* ---- words of a stream, many in one call: its first address that is refused is given to the driver as one that it does not know, alone */

static uint64_t word_bytes(CUstreamBatchMemOpType type)
{
    switch (type) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return 4;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return 8;
    default:
        return 0;
    }
}

CUresult tn_serve_cuStreamBatchMemOp(tn_hook_frame *f, CUresult (*call)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned), CUstream stream, unsigned count,
                                     CUstreamBatchMemOpParams *each, unsigned flags)
{
    for (unsigned i = 0; each && i < count; i++) {
        if (!is_other(f, each[i].waitValue.address, word_bytes(each[i].operation))) continue;
        CUstreamBatchMemOpParams one = each[i];
        one.waitValue.address = TN_NO_ADDRESS;
        return call(stream, 1, &one, flags);
    }
    return call(stream, count, each, flags);
}
