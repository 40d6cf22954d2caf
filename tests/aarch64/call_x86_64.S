/* call_dlsym, see observe.h. */
        .text
        .globl  call_dlsym
        .type   call_dlsym, @function
call_dlsym:
        .cfi_startproc
        pushq   %rbx
        pushq   %rbp
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        pushq   %rcx                    /* kept */
        pushq   %r8                     /* around */
        subq    $8, %rsp                /* 16-byte aligned here */
        .cfi_def_cfa_offset 80
        movq    %rsp, 0(%r8)
        leaq    1f(%rip), %rax
        movq    %rax, 16(%r8)
        leaq    (%rdx), %rbx
        leaq    (%rdx,%rdx), %rbp
        leaq    (%rdx,%rbp), %r12
        leaq    (%rdx,%r12), %r13
        leaq    (%rdx,%r13), %r14
        leaq    (%rdx,%r14), %r15
        call    dlsym@PLT
1:      movq    8(%rsp), %r8
        movq    %rsp, 8(%r8)
        movq    16(%rsp), %rcx
        movq    %rbx, 0(%rcx)
        movq    %rbp, 8(%rcx)
        movq    %r12, 16(%rcx)
        movq    %r13, 24(%rcx)
        movq    %r14, 32(%rcx)
        movq    %r15, 40(%rcx)
        addq    $24, %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbp
        popq    %rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   call_dlsym, . - call_dlsym

        .section .rodata
        .globl  observed_registers
        .type   observed_registers, @object
        .size   observed_registers, 4
        .p2align 2
observed_registers:
        .long   6
        .section .note.GNU-stack, "", @progbits
