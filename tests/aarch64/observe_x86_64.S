/* A dlsym that notes how it was entered and finds nothing. It needs no library, hence no symbol versions: a versioned look-up
 * of dlsym finds it, and so it stands behind the shim as the real one. See observe.h. */
        .text
        .globl  dlsym
        .type   dlsym, @function
dlsym:
        .cfi_startproc
        movq    observed_entry@GOTPCREL(%rip), %rax
        movq    %rdi, 0(%rax)
        movq    %rsi, 8(%rax)
        movq    %rsp, 16(%rax)
        movq    (%rsp), %rdx
        movq    %rdx, 24(%rax)
        movq    %rbx, 32(%rax)
        movq    %rbp, 40(%rax)
        movq    %r12, 48(%rax)
        movq    %r13, 56(%rax)
        movq    %r14, 64(%rax)
        movq    %r15, 72(%rax)
        incq    120(%rax)
        xorl    %eax, %eax
        ret
        .cfi_endproc
        .size   dlsym, . - dlsym

        .globl  observed_entry
        .type   observed_entry, @object
        .size   observed_entry, 128
        .bss
        .p2align 3
observed_entry:
        .zero   128
        .section .note.GNU-stack, "", @progbits
