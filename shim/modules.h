/* The process's loaded modules, as the loader tells them (dl_iterate_phdr): which file an address lies in, its load base and its
 * build-id. Any thread may call; each call takes the loader's lock and none of ours, so it is for misses and for the resolver, never for
 * a warm path. No malloc, no stdio. */
#ifndef TENURE_SHIM_MODULES_H
#define TENURE_SHIM_MODULES_H

#include <stddef.h>
#include <stdint.h>

typedef struct tn_module_info {
    uint64_t base, end;      /* load base (link_map's l_addr) and the end of the last PT_LOAD */
    uint64_t segment, segment_end; /* the PT_LOAD that holds the address asked for; it stays this module's until a dlclose */
    uint8_t build_id[32];
    uint8_t build_id_bytes;  /* never 0 for a file: a module without build-id gets 8 bytes of hash and `hashed` */
    uint8_t hashed;
    uint8_t is_main;         /* the executable; its path is the one it had when the process began */
    const char *path;        /* never NULL; the loader's own copy, there as long as the module is */
} tn_module_info;

/* 1 and *out filled when addr lies in a PT_LOAD segment of a loaded module (the kernel's vdso is one), else 0 (anonymous code). */
int tn_module_of(const void *addr, tn_module_info *out);
/* For the atfork handler of the child: from now on tn_module_of() does without the lock that a fork may have left taken. */
void tn_modules_after_fork(void);
/* Around a real dlclose, for the thread that makes it: 1 before, -1 after. */
void tn_modules_closing(int step);
/* dl_iterate_phdr, for all of this library and for its libunwind, with all signals blocked: `visit` must be short. A signal handler that interrupts a dlclose finds an object in the
 * loader's list whose memory is gone already: on a thread inside a dlclose such an object is passed over. */
struct dl_phdr_info;
int tn_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *arg), void *arg);
/* The last part of a path. */
const char *tn_basename(const char *path);
/* Whether a file's name is that of a CUDA driver (libcuda.so...), a shared CUDA runtime (libcudart.so..., libcudart-*.so), or NVML
 * (libnvidia-ml.so...), by its basename. Exact: "libcudart_static" or "libcudadebugger" are none of them. */
int tn_is_libcuda(const char *path);
int tn_is_libcudart(const char *path);
int tn_is_nvml(const char *path);

#endif
