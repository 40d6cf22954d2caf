/* Whether what a copy or a memset touches is the program's: a byte of an arena that is in no live block, or behind the end of the block in which the
 * call begins, is none of it, and the driver refuses the call as it would where each block were its own. By address first: what lies outside all
 * arenas is compared with two words and goes on; what lies inside is looked up, or found among the few blocks that this thread has lately copied
 * from or to. Addresses that a call names as host memory are not looked at: natively a freed one ends the program, and nothing here does.
 * Any thread; a signal handler inside a hook too, which leaves nothing behind. No lock is taken, and no driver asked but about the end of a
 * stream-ordered free (serve_pending.h). */
#ifndef TENURE_SHIM_SERVE_REACH_H
#define TENURE_SHIM_SERVE_REACH_H

#include <stddef.h>
#include <stdint.h>

#include "shim/cuda_abi.h"
#include "shim/hook.h"

/* An address that no driver knows, in place of one that the program does not have: the driver's own checks come first, and then its refusal. */
#define TN_NO_ADDRESS ((uint64_t)64)

/* Whether the address lies between the lowest arena and the highest; 0 at once where there are none. */
static inline __attribute__((always_inline)) int tn_serve_may_own(uint64_t address)
{
    const tn_hot *hot = tn_hot_page;
    uint64_t from = atomic_load_explicit(&hot->arenas, memory_order_acquire);
    return __builtin_expect(address - from < atomic_load_explicit(&hot->arenas_end, memory_order_acquire) - from, 0);
}

/* Whether the `bytes` bytes from `address` on are the program's to touch, as far as serving is concerned: in no arena, or in one live block. 0 bytes:
 * whether the address is. */
int tn_serve_reaches(tn_hook_frame *f, uint64_t address, uint64_t bytes);

/* Before a call of the driver that is given device memory at `address`, which becomes TN_NO_ADDRESS where that is not the program's. */
#define TN_REACH(address, bytes) \
    if (tn_serve_may_own((uint64_t)(address)) && !tn_serve_reaches(TN_F, (uint64_t)(address), bytes)) (address) = TN_NO_ADDRESS
/* Bytes of rows that lie `pitch` apart, from the first one's first on. */
static inline uint64_t tn_rows(uint64_t pitch, uint64_t width, uint64_t rows) { return width && rows ? (rows - 1) * pitch + width : 0; }

/* ---- rows that name memory by its address alone, or in a struct of theirs: in place of the real function, as in serve_calls.h */
#define TN_SERVED_cuMemcpy ~,
#define TN_SERVED_cuMemcpy_ptds ~,
#define TN_SERVED_cuMemcpyAsync ~,
#define TN_SERVED_cuMemcpyAsync_ptsz ~,
#define TN_SERVED_cuMemcpy2D_v2 ~,
#define TN_SERVED_cuMemcpy2D_v2_ptds ~,
#define TN_SERVED_cuMemcpy2DUnaligned_v2 ~,
#define TN_SERVED_cuMemcpy2DUnaligned_v2_ptds ~,
#define TN_SERVED_cuMemcpy2DAsync_v2 ~,
#define TN_SERVED_cuMemcpy2DAsync_v2_ptsz ~,
#define TN_SERVED_cuMemcpy3D_v2 ~,
#define TN_SERVED_cuMemcpy3D_v2_ptds ~,
#define TN_SERVED_cuMemcpy3DAsync_v2 ~,
#define TN_SERVED_cuMemcpy3DAsync_v2_ptsz ~,
#define TN_SERVED_cuMemcpy3DPeer ~,
#define TN_SERVED_cuMemcpy3DPeer_ptds ~,
#define TN_SERVED_cuMemcpy3DPeerAsync ~,
#define TN_SERVED_cuMemcpy3DPeerAsync_ptsz ~,
#define TN_SERVED_cuMemcpyBatchAsync ~,
#define TN_SERVED_cuMemcpyBatchAsync_ptsz ~,
#define TN_SERVED_cuMemcpyBatchAsync_v2 ~,
#define TN_SERVED_cuMemcpyBatchAsync_v2_ptsz ~,
#define TN_SERVED_cuMemcpy3DBatchAsync ~,
#define TN_SERVED_cuMemcpy3DBatchAsync_ptsz ~,
#define TN_SERVED_cuMemcpy3DBatchAsync_v2 ~,
#define TN_SERVED_cuMemcpy3DBatchAsync_v2_ptsz ~,
#define TN_SERVED_cuStreamBatchMemOp ~,
#define TN_SERVED_cuStreamBatchMemOp_ptsz ~,
#define TN_SERVED_cuStreamBatchMemOp_v2 ~,
#define TN_SERVED_cuStreamBatchMemOp_v2_ptsz ~,
CUresult tn_serve_cuMemcpy(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, CUdeviceptr, size_t), CUdeviceptr dst, CUdeviceptr src, size_t bytes);
#define tn_serve_cuMemcpy_ptds tn_serve_cuMemcpy
CUresult tn_serve_cuMemcpyAsync(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, CUdeviceptr, size_t, CUstream), CUdeviceptr dst, CUdeviceptr src,
                                size_t bytes, CUstream stream);
#define tn_serve_cuMemcpyAsync_ptsz tn_serve_cuMemcpyAsync
CUresult tn_serve_cuMemcpy2D_v2(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY2D *), const CUDA_MEMCPY2D *copy);
#define tn_serve_cuMemcpy2D_v2_ptds tn_serve_cuMemcpy2D_v2
#define tn_serve_cuMemcpy2DUnaligned_v2 tn_serve_cuMemcpy2D_v2
#define tn_serve_cuMemcpy2DUnaligned_v2_ptds tn_serve_cuMemcpy2D_v2
CUresult tn_serve_cuMemcpy2DAsync_v2(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY2D *, CUstream), const CUDA_MEMCPY2D *copy, CUstream stream);
#define tn_serve_cuMemcpy2DAsync_v2_ptsz tn_serve_cuMemcpy2DAsync_v2
CUresult tn_serve_cuMemcpy3D_v2(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY3D *), const CUDA_MEMCPY3D *copy);
#define tn_serve_cuMemcpy3D_v2_ptds tn_serve_cuMemcpy3D_v2
CUresult tn_serve_cuMemcpy3DAsync_v2(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY3D *, CUstream), const CUDA_MEMCPY3D *copy, CUstream stream);
#define tn_serve_cuMemcpy3DAsync_v2_ptsz tn_serve_cuMemcpy3DAsync_v2
CUresult tn_serve_cuMemcpy3DPeer(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY3D_PEER *), const CUDA_MEMCPY3D_PEER *copy);
#define tn_serve_cuMemcpy3DPeer_ptds tn_serve_cuMemcpy3DPeer
CUresult tn_serve_cuMemcpy3DPeerAsync(tn_hook_frame *f, CUresult (*call)(const CUDA_MEMCPY3D_PEER *, CUstream), const CUDA_MEMCPY3D_PEER *copy, CUstream stream);
#define tn_serve_cuMemcpy3DPeerAsync_ptsz tn_serve_cuMemcpy3DPeerAsync
CUresult tn_serve_cuMemcpyBatchAsync(tn_hook_frame *f,
                                     CUresult (*call)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, size_t *, CUstream),
                                     CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t count, CUmemcpyAttributes *attributes, size_t *of,
                                     size_t attribute_count, size_t *failed, CUstream stream);
#define tn_serve_cuMemcpyBatchAsync_ptsz tn_serve_cuMemcpyBatchAsync
CUresult tn_serve_cuMemcpyBatchAsync_v2(tn_hook_frame *f,
                                        CUresult (*call)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, CUstream),
                                        CUdeviceptr *dst, CUdeviceptr *src, size_t *bytes, size_t count, CUmemcpyAttributes *attributes, size_t *of,
                                        size_t attribute_count, CUstream stream);
#define tn_serve_cuMemcpyBatchAsync_v2_ptsz tn_serve_cuMemcpyBatchAsync_v2
CUresult tn_serve_cuMemcpy3DBatchAsync(tn_hook_frame *f, CUresult (*call)(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream), size_t count,
                                       CUDA_MEMCPY3D_BATCH_OP *each, size_t *failed, unsigned long long flags, CUstream stream);
#define tn_serve_cuMemcpy3DBatchAsync_ptsz tn_serve_cuMemcpy3DBatchAsync
CUresult tn_serve_cuMemcpy3DBatchAsync_v2(tn_hook_frame *f, CUresult (*call)(size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream), size_t count,
                                          CUDA_MEMCPY3D_BATCH_OP *each, unsigned long long flags, CUstream stream);
#define tn_serve_cuMemcpy3DBatchAsync_v2_ptsz tn_serve_cuMemcpy3DBatchAsync_v2
CUresult tn_serve_cuStreamBatchMemOp(tn_hook_frame *f, CUresult (*call)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned), CUstream stream, unsigned count,
                                     CUstreamBatchMemOpParams *each, unsigned flags);
#define tn_serve_cuStreamBatchMemOp_ptsz tn_serve_cuStreamBatchMemOp
#define tn_serve_cuStreamBatchMemOp_v2 tn_serve_cuStreamBatchMemOp
#define tn_serve_cuStreamBatchMemOp_v2_ptsz tn_serve_cuStreamBatchMemOp

#endif
