/* A session with NVML. */
#include "shim/charge_nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "shim/real.h"

#define NOT_AVAILABLE UINT64_MAX /* what NVML says where it may not tell a process's bytes */

/* NVML's own layouts: nvmlMemory_t, and nvmlProcessInfo_t since version 2. */
typedef struct memory_info { unsigned long long total, free, used; } memory_info;
typedef struct process_info { unsigned pid; unsigned long long bytes; unsigned gpu_instance, compute_instance; } process_info;

static void *symbol(void *library, const char *name) { return tn_real_dlsym(library, name); }

static void uuid_text(char out[48], const char *kind, const unsigned char b[16])
{
    snprintf(out, 48, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", kind, b[0], b[1], b[2], b[3], b[4], b[5], b[6],
             b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static int find_device(tn_nvml_session *s, int ordinal)
{
    CUuuid uuid;
    char text[48];
    int (*by_uuid)(const char *, void **);
    void *p = symbol(s->library, "nvmlDeviceGetHandleByUUID");
    memcpy(&by_uuid, &p, sizeof p);
    if (!by_uuid || !tn_real.cuDeviceGetUuid_v2 || tn_real.cuDeviceGetUuid_v2(&uuid, ordinal) != 0) return 0;
    uuid_text(text, "GPU", (const unsigned char *)uuid.bytes);
    if (by_uuid(text, &s->device) == 0) return 1;
    uuid_text(text, "MIG", (const unsigned char *)uuid.bytes);
    return by_uuid(text, &s->device) == 0;
}

int tn_nvml_session_open(tn_nvml_session *s, int ordinal)
{
    int (*init)(void);
    memset(s, 0, sizeof *s);
    s->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!s->library) {
        (void)dlerror(); /* the program asks for its own errors only */
        return 0;
    }
    void *p = symbol(s->library, "nvmlInit_v2");
    memcpy(&init, &p, sizeof p);
    p = symbol(s->library, "nvmlShutdown");
    memcpy(&s->shutdown, &p, sizeof p);
    p = symbol(s->library, "nvmlDeviceGetMemoryInfo");
    memcpy(&s->memory, &p, sizeof p);
    p = symbol(s->library, "nvmlDeviceGetComputeRunningProcesses_v3");
    memcpy(&s->processes, &p, sizeof p);
    if (!init || !s->shutdown || !s->memory || init() != 0) {
        s->shutdown = NULL;
        tn_nvml_session_close(s);
        return 0;
    }
    if (find_device(s, ordinal)) return 1;
    tn_nvml_session_close(s);
    return 0;
}

void tn_nvml_session_close(tn_nvml_session *s)
{
    if (s->shutdown) (void)s->shutdown();
    if (s->library) (void)tn_real_dlclose(s->library);
    memset(s, 0, sizeof *s);
}

int tn_nvml_used(const tn_nvml_session *s, uint64_t *out)
{
    memory_info m = {0};
    if (!s->device || s->memory(s->device, &m) != 0) return 0;
    *out = m.used;
    return 1;
}

int tn_nvml_processes(const tn_nvml_session *s, tn_nvml_process out[TN_NVML_PROCESSES])
{
    process_info all[TN_NVML_PROCESSES];
    unsigned count = TN_NVML_PROCESSES;
    if (!s->device || !s->processes || s->processes(s->device, &count, all) != 0 || count > TN_NVML_PROCESSES) return -1;
    for (unsigned i = 0; i < count; i++) out[i] = (tn_nvml_process){all[i].pid, all[i].bytes == NOT_AVAILABLE ? 0 : all[i].bytes};
    return (int)count;
}
