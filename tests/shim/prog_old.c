/* A program for an old root: no start-up object and no symbol version of the machine it was built on. Allocates and frees through the
 * mini driver it is linked with. */
#define _GNU_SOURCE
#include <cuda.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/shim/mini/mini.h"

int old_main(void);

static void say(const char *text, size_t n)
{
    if (write(1, text, n) != (ssize_t)n)
        _exit(97);
}

int old_main(void)
{
    CUdeviceptr p[10];
    int errors = cuInit(0);
    for (int i = 0; i < 10; i++)
        errors += (int)cuMemAlloc(&p[i], 1000 + (size_t)i);
    for (int i = 0; i < 9; i++)
        errors += (int)cuMemFree(p[i]);
    char line[] = "errors ?\n";
    line[7] = (char)(errors < 10 ? '0' + errors : '+');
    say(line, sizeof line - 1);
    exit(mini_allocations() == 10 && mini_frees() == 9 ? 5 : 96);
}

/* __libc_start_main(main, argc, argv, init, fini, rtld_fini, stack_end), by its version from before glibc 2.34. */
#if defined(__x86_64__)
__asm__(".symver start_main,__libc_start_main@GLIBC_2.2.5\n"
        ".globl _start\n"
        "_start:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    xor %ebp, %ebp\n"
        "    mov %rdx, %r9\n"
        "    pop %rsi\n"
        "    mov %rsp, %rdx\n"
        "    and $-16, %rsp\n"
        "    push %rax\n"
        "    push %rsp\n"
        "    xor %r8d, %r8d\n"
        "    xor %ecx, %ecx\n"
        "    lea old_main(%rip), %rdi\n"
        "    call start_main@PLT\n"
        "    hlt\n"
        "    .cfi_endproc\n");
#elif defined(__aarch64__)
__asm__(".symver start_main,__libc_start_main@GLIBC_2.17\n"
        ".globl _start\n"
        "_start:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined x30\n"
        "    mov x29, #0\n"
        "    mov x30, #0\n"
        "    mov x5, x0\n"
        "    ldr x1, [sp]\n"
        "    add x2, sp, #8\n"
        "    mov x6, sp\n"
        "    mov x3, #0\n"
        "    mov x4, #0\n"
        "    adrp x0, old_main\n"
        "    add x0, x0, :lo12:old_main\n"
        "    bl start_main\n"
        "    brk #0\n"
        "    .cfi_endproc\n");
#endif
