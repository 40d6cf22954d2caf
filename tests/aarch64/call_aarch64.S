/* call_dlsym, see observe.h. */
        .text
        .globl  call_dlsym
        .type   call_dlsym, %function
call_dlsym:
        .cfi_startproc
        stp     x29, x30, [sp, #-112]!
        .cfi_def_cfa_offset 112
        .cfi_offset 29, -112
        .cfi_offset 30, -104
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     x3, x4, [sp, #96]       /* kept, around */
        mov     x9, sp
        str     x9, [x4, #0]
        adr     x9, 1f
        str     x9, [x4, #16]
        mov     x19, x2
        add     x20, x19, x2
        add     x21, x20, x2
        add     x22, x21, x2
        add     x23, x22, x2
        add     x24, x23, x2
        add     x25, x24, x2
        add     x26, x25, x2
        add     x27, x26, x2
        add     x28, x27, x2
        add     x29, x28, x2
        bl      dlsym
1:      ldp     x3, x4, [sp, #96]
        mov     x9, sp
        str     x9, [x4, #8]
        stp     x19, x20, [x3, #0]
        stp     x21, x22, [x3, #16]
        stp     x23, x24, [x3, #32]
        stp     x25, x26, [x3, #48]
        stp     x27, x28, [x3, #64]
        str     x29, [x3, #80]
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     x29, x30, [sp], #112
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   call_dlsym, . - call_dlsym

        .section .rodata
        .globl  observed_registers
        .type   observed_registers, %object
        .size   observed_registers, 4
        .p2align 2
observed_registers:
        .word   11
        .section .note.GNU-stack, "", %progbits
