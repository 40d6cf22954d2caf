/* What NVML knows of a device before this process has a context on it, and of its neighbours. NVML is opened by dlopen for one session of
 * questions and closed again, so that a program that uses NVML itself finds it as it left it; never required. A session belongs to the
 * thread that opened it. Not from a signal handler inside a hook, not while a lock of ours is held. */
#ifndef TENURE_SHIM_CHARGE_NVML_H
#define TENURE_SHIM_CHARGE_NVML_H

#include <stdint.h>

typedef struct tn_nvml_session {
    void *library;
    void *device;
    int (*shutdown)(void);
    int (*memory)(void *, void *);
    int (*processes)(void *, unsigned *, void *);
} tn_nvml_session;

/* Opens NVML for the driver's device `ordinal`. 1; or 0 where there is no NVML, no permission or no such device, with nothing left open. */
int tn_nvml_session_open(tn_nvml_session *s, int ordinal);
void tn_nvml_session_close(tn_nvml_session *s);
/* Bytes in use on the whole device, by anybody. 0 where NVML does not say, and *out is left. */
int tn_nvml_used(const tn_nvml_session *s, uint64_t *out);

#define TN_NVML_PROCESSES 64u
typedef struct tn_nvml_process { uint32_t pid; uint64_t bytes; } tn_nvml_process;
/* The processes that have a context there, as far as NVML tells this process: their number, or -1 where it does not say. In a container the
 * list is often empty or in other process numbers: only one that names this process with a figure is to be believed. */
int tn_nvml_processes(const tn_nvml_session *s, tn_nvml_process out[TN_NVML_PROCESSES]);

#endif
