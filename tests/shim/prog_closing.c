/* A CUDA call from a signal handler that interrupts a dlclose just when the library's memory has gone and the loader's list still names it.
 * The system call that takes the memory away is trapped, so that the moment is always the same; the handler makes its call through code
 * that no library holds, for which every library must be asked. usage: prog_closing LIBRARY; x86-64 only, 77 elsewhere. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/shim/prog.h"

#if defined(__x86_64__)
typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*through_fn)(CUdeviceptr *, size_t, alloc_fn);

/* sub $8,%rsp; call *%rdx; add $8,%rsp; ret */
static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd2, 0x48, 0x83, 0xc4, 0x08, 0xc3};
static through_fn through;
static volatile sig_atomic_t traps, refused;

static void on_trap(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    CUdeviceptr p = 0;
    (void)signal;
    (void)info;
    traps++;
    if (mprotect((void *)registers[REG_RDI], (size_t)registers[REG_RSI], PROT_NONE) != 0)
        refused += 100;
    refused += through(&p, 77, cuMemAlloc) != CUDA_SUCCESS;
    registers[REG_RAX] = 0;
}

static void trap_munmap_of(uint64_t base)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)base, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(base >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    struct link_map *map = NULL;
    CUdeviceptr p = 0;
    MUST(argc == 2 && cuInit(0) == CUDA_SUCCESS && cuMemAlloc(&p, 100) == CUDA_SUCCESS);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(page != MAP_FAILED);
    memcpy(page, code, sizeof code);
    memcpy(&through, &page, sizeof through);
    void *library = dlopen(argv[1], RTLD_NOW);
    MUST(library != NULL && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
    MUST(sigaction(SIGSYS, &action, NULL) == 0);
    trap_munmap_of(map->l_addr);
    MUST(dlclose(library) == 0);
    printf("traps %d, refused %d\n", (int)traps, (int)refused);
    return 0;
}
#else
int main(void) { return 77; }
#endif
