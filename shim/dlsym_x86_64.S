/* void *dlsym(void *handle, const char *name): asks tn_dlsym_route(handle, name, return address), then either returns its
 * answer or continues in the real dlsym with the stack and the argument registers as the caller left them. */
        .text
        .globl  dlsym
        .type   dlsym, @function
        .p2align 4
dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                /* the call below needs a 16-byte aligned stack */
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rdx          /* who asks */
        call    tn_dlsym_route
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rdx, %rdx
        jz      1f
        jmp     *%rax
1:      ret
        .cfi_endproc
        .size   dlsym, . - dlsym
        .section .note.GNU-stack, "", @progbits
