/* Charges: device memory that belongs to nobody's allocation call, by kind. The demand file, the remembered measurements and the memory
 * plan name them alike. Constant tables; any thread. */
#ifndef TENURE_PLANNER_CHARGE_H
#define TENURE_PLANNER_CHARGE_H

#include <stdint.h>

typedef enum tn_charge {
    TN_CLAIM_CONTEXT = 0, /* what a context takes when it is created */
    TN_CLAIM_MODULES,     /* kernel code, as it is loaded or first launched */
    TN_CLAIM_LIBRARIES,   /* what the libraries in the process claim for themselves */
    TN_CLAIM_STREAMS,     /* streams and events */
    TN_CLAIM_GRAPHS,      /* uploaded graphs and the memory that graphs reserve */
    TN_CLAIM_LIMITS,      /* stacks, local memory and the device heap */
    TN_CLAIM_POOLS,       /* reserved by stream-ordered pools or shared 2 MiB pages, and not used */
    TN_CLAIM_OTHER,
    TN_CHARGES
} tn_charge;

typedef struct tn_charges {
    uint64_t bytes[TN_CHARGES];
} tn_charges;

/* The key in files ("context") and the label in tables ("CUDA context"); never NULL. */
const char *tn_charge_key(tn_charge charge);
const char *tn_charge_label(tn_charge charge);
/* The charge of that key, or TN_CHARGES. */
tn_charge tn_charge_find(const char *key);

#endif
