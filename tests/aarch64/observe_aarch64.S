/* See observe_x86_64.S. */
        .text
        .globl  dlsym
        .type   dlsym, %function
dlsym:
        .cfi_startproc
        adrp    x9, :got:observed_entry
        ldr     x9, [x9, :got_lo12:observed_entry]
        stp     x0, x1, [x9, #0]
        mov     x10, sp
        stp     x10, x30, [x9, #16]
        stp     x19, x20, [x9, #32]
        stp     x21, x22, [x9, #48]
        stp     x23, x24, [x9, #64]
        stp     x25, x26, [x9, #80]
        stp     x27, x28, [x9, #96]
        str     x29, [x9, #112]
        ldr     x10, [x9, #120]
        add     x10, x10, #1
        str     x10, [x9, #120]
        mov     x0, #0
        ret
        .cfi_endproc
        .size   dlsym, . - dlsym

        .globl  observed_entry
        .type   observed_entry, %object
        .size   observed_entry, 128
        .bss
        .p2align 3
observed_entry:
        .zero   128
        .section .note.GNU-stack, "", %progbits
