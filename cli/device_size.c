/* The child writes one record a device to a pipe. */
#define _GNU_SOURCE
#include "cli/device_size.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_LIBRARY = 3, NO_DRIVER = 4, SECONDS = 120 };

/* The driver's functions, by hand: the command is built without CUDA's headers. */
typedef int (*init_function)(unsigned);
typedef int (*count_function)(int *);
typedef int (*get_function)(int *, int);
typedef int (*total_function)(size_t *, int);
typedef int (*name_function)(char *, int, int);

/* Casting an object pointer to a function pointer is what dlsym is for, and what ISO C forbids. */
#define FIND(type, library, name) (((union { void *object; type function; }){.object = dlsym(library, name)}).function)

static void ask(int to)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int count = 0;
    if (!library)
        _exit(NO_LIBRARY);
    init_function init = FIND(init_function, library, "cuInit");
    count_function counter = FIND(count_function, library, "cuDeviceGetCount");
    get_function get = FIND(get_function, library, "cuDeviceGet");
    total_function total = FIND(total_function, library, "cuDeviceTotalMem_v2");
    name_function name = FIND(name_function, library, "cuDeviceGetName");
    if (!init || !counter || !get || !total || !name || init(0) != 0 || counter(&count) != 0)
        _exit(NO_DRIVER);
    for (int i = 0; i < count && i < TN_DEVICES; i++) {
        tn_device_size size = {.total = 0};
        size_t bytes = 0;
        int device;
        if (get(&device, i) != 0 || total(&bytes, device) != 0)
            _exit(NO_DRIVER);
        size.total = bytes;
        if (name(size.name, sizeof size.name, device) != 0)
            strcpy(size.name, "unknown");
        if (write(to, &size, sizeof size) != (ssize_t)sizeof size) /* less than a pipe takes at once */
            _exit(NO_DRIVER);
    }
    _exit(0);
}

static int take(int from, tn_device_size out[TN_DEVICES])
{
    size_t used = 0, room = TN_DEVICES * sizeof *out;
    while (used < room) {
        ssize_t n = read(from, (char *)out + used, room - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    return (int)(used / sizeof *out);
}

int tn_device_sizes(tn_device_size out[TN_DEVICES], const char **why)
{
    int ends[2], status = 0, count;
    *why = "no process can be started to ask it";
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    /* With SIGCHLD ignored, as some parents leave it, there would be no exit status. */
    struct sigaction plain = {.sa_handler = SIG_DFL}, inherited;
    sigaction(SIGCHLD, &plain, &inherited);
    pid_t child = fork();
    if (child == 0) {
        /* A driver may print, and may hang. */
        int nowhere = open("/dev/null", O_RDWR);
        for (int i = 0; nowhere >= 0 && i < 3; i++)
            dup2(nowhere, i);
        alarm(SECONDS);
        ask(ends[1]);
    }
    close(ends[1]);
    count = child > 0 ? take(ends[0], out) : -1;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    sigaction(SIGCHLD, &inherited, NULL);
    if (child < 0)
        return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return count;
    *why = !WIFEXITED(status)                    ? "the driver did not answer"
           : WEXITSTATUS(status) == NO_LIBRARY ? "there is no libcuda.so.1"
                                               : "the driver cannot be started";
    return -1;
}
