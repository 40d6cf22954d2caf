/* What the fake GPU tells the other stand-ins in the same process.
 *
 * Exported by the fake libcuda.so.1 and looked up by dlsym with RTLD_NOLOAD, so
 * that nothing here makes a process load the driver. Callable from any thread,
 * before cuInit too. */
#ifndef FAKEGPU_FAKEGPU_H
#define FAKEGPU_FAKEGPU_H

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of device `dev` in use and in all, by the fake driver's own count.
 *  Returns 0, or -1 for an ordinal it does not have (outputs untouched).
 *  Either output may be NULL. */
int fakegpu_device_used(int dev, unsigned long long *used, unsigned long long *total);

/** Bytes that other processes have in use on the same card (FAKEGPU_SHARED). */
unsigned long long fakegpu_device_others(int dev);

/** cuGetProcAddress_v2 under a name that nothing stands in front of, for the
 *  fake runtime under FAKEGPU_DIRECT: what it answers are the driver's own
 *  functions. (Its type is in cudart_init.c; this header needs no CUDA.) */

#ifdef __cplusplus
}
#endif

#endif
