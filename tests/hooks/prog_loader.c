/* What a program sees of the loader around CUDA: dlerror and errno after a look-up that succeeds, and a driver and an NVML that
 * are closed and opened again at another place. Prints observations without addresses, natively and under the preload the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

typedef int (*init_fn)(unsigned);
typedef int (*device_fn)(int *, int);
typedef int (*retain_fn)(void **, int);
typedef int (*set_fn)(void *);
typedef int (*alloc_fn)(unsigned long long *, size_t);
typedef int (*free_fn)(unsigned long long);
typedef int (*nvml_init_fn)(void);
typedef int (*nvml_handle_fn)(unsigned, void **);
typedef int (*nvml_memory_fn)(void *, void *);

static void *look_up(void *handle, const char *name)
{
    dlerror();
    errno = 77;
    void *p = dlsym(handle, name);
    int kept = errno == 77;
    printf("%s found=%d dlerror=%d errno_kept=%d\n", name, p != NULL, dlerror() != NULL, kept);
    return p;
}

/* Pages over the place where a library stood, so that the next one lands elsewhere. */
static void occupy(const void *where)
{
    unsigned long at = (unsigned long)where & ~0xffful;
    for (long i = -4096; i < 4096; i++)
        (void)mmap((void *)(at + (unsigned long)(i * 4096)), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void use_nvml(void **where)
{
    unsigned long long memory[8] = {0};
    void *device = NULL, *h = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    nvml_init_fn init = (nvml_init_fn)dlsym(h, "nvmlInit_v2");
    nvml_handle_fn handle = (nvml_handle_fn)dlsym(h, "nvmlDeviceGetHandleByIndex_v2");
    nvml_memory_fn info = (nvml_memory_fn)look_up(h, "nvmlDeviceGetMemoryInfo");
    *where = (void *)handle;
    printf("nvml init=%d", init());
    printf(" handle=%d", handle(0, &device));
    printf(" info=%d", info(device, memory));
    printf(" total=%d\n", memory[0] != 0);
    printf("close=%d\n", dlclose(h));
}

int main(void)
{
    void *where = NULL, *context = NULL;
    int device = -1;
    unsigned long long p = 0;

    void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    where = look_up(h, "cuDriverGetVersion");
    look_up(h, "cuInit");
    printf("close=%d\n", dlclose(h));
    h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    printf("still there=%d\n", h != NULL);
    if (h) dlclose(h);
    else occupy(where);

    h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    init_fn init = (init_fn)look_up(h, "cuInit");
    device_fn get = (device_fn)look_up(h, "cuDeviceGet");
    retain_fn retain = (retain_fn)look_up(h, "cuDevicePrimaryCtxRetain");
    set_fn set = (set_fn)look_up(h, "cuCtxSetCurrent");
    alloc_fn alloc = (alloc_fn)look_up(h, "cuMemAlloc_v2");
    free_fn release = (free_fn)look_up(h, "cuMemFree_v2");
    printf("init=%d\n", init(0));
    printf("get=%d\n", get(&device, 0));
    printf("retain=%d\n", retain(&context, 0));
    printf("set=%d\n", set(context));
    printf("alloc=%d\n", alloc(&p, 12345));
    printf("free=%d\n", release(p));

    use_nvml(&where);
    h = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    printf("still there=%d\n", h != NULL);
    if (h) dlclose(h);
    else occupy(where);
    use_nvml(&where);
    return 0;
}
