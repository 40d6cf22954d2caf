/* void *dlsym(void *handle, const char *name): see dlsym_x86_64.S. x16 is the one register that a branch may use with
 * branch protection on, and the real dlsym reads who asks from x30. */
        .text
        .globl  dlsym
        .type   dlsym, %function
        .p2align 4
dlsym:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        mov     x2, x30                 /* who asks */
        bl      tn_dlsym_route
        mov     x16, x0
        mov     x17, x1
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        cbz     x17, 1f
        br      x16
1:      mov     x0, x16
        ret
        .cfi_endproc
        .size   dlsym, . - dlsym
        .section .note.GNU-stack, "", %progbits
