/* A small reader of .eh_frame: for a return address, how its function's caller is found. It owns nothing and keeps nothing; what it reads are
 * the tables of loaded modules. Any thread may call; each call takes the loader's lock (dl_iterate_phdr) and none of ours, so it is for
 * misses only. No malloc. */
#ifndef TENURE_SHIM_CFI_H
#define TENURE_SHIM_CFI_H

#include <stdint.h>

/* How the CFA (the stack pointer of the calling function right after the call has returned) is to be had. */
typedef enum tn_cfi_kind {
    TN_CFI_OTHER = 0, /* no table for this address, a signal frame, an expression, another register, anything that is not understood */
    TN_CFI_SP,        /* the stack pointer plus `cfa` */
    TN_CFI_FP,        /* the frame pointer plus `cfa` */
    TN_CFI_END,       /* the return address is undefined: nothing called this */
} tn_cfi_kind;

/* Where the calling function's frame pointer is. */
typedef enum tn_cfi_fp {
    TN_CFI_FP_LOST = 0, /* nowhere that these tables could tell */
    TN_CFI_FP_SAME,     /* still in the register */
    TN_CFI_FP_SAVED,    /* at the CFA plus `fp_offset` */
} tn_cfi_fp;

typedef struct tn_cfi_rule {
    int32_t cfa;       /* bytes */
    int32_t ra_offset; /* the return address is at the CFA plus this many bytes */
    int32_t fp_offset;
    uint8_t kind; /* tn_cfi_kind */
    uint8_t fp;   /* tn_cfi_fp */
} tn_cfi_rule;

/* The rule that holds at the call before the return address `ret`. All zero (TN_CFI_OTHER) where there is none of the kinds above. Holds until
 * the module is unloaded. */
void tn_cfi_rule_of(uint64_t ret, tn_cfi_rule *out);

#endif
