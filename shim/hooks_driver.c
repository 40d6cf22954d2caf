/* The driver's and NVML's hooks, one exported function a row. */
#include "shim/hooks.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"

/* A program that links libcuda itself gets here before any resolver was asked; one that links a library of another name with
 * functions of the driver's names (a test's stand-in) gets those. */
#define TN_REAL_DRIVER(name)                                      \
    (tn_real.name || (tn_driver_bind(NULL, NULL), tn_real.name) ? tn_real.name \
                                                                : (__typeof__(tn_real.name))tn_behind_us(#name, (const void *)TN_EXPORTED(name)))
#define TN_DRIVER(klass, variant, name, params, args, before, after) \
    CUresult TN_EXPORTED(name) params TN_BODY(CUresult, klass, name, variant, args, before, after, TN_REAL_DRIVER(name))
#include "shim/api_driver_memory.def"
#include "shim/api_driver_order.def"
#include "shim/api_driver_work.def"
#include "shim/api_driver_copy.def"
#undef TN_DRIVER

#define TN_REAL_NVML(name)                                             \
    (tn_real_nvml.name || (tn_nvml_bind(NULL), tn_real_nvml.name) ? tn_real_nvml.name \
                                                                  : (__typeof__(tn_real_nvml.name))tn_behind_us(#name, (const void *)TN_EXPORTED(name)))
#define TN_NVML(klass, name, params, args, after) \
    int TN_EXPORTED(name) params TN_BODY(int, klass, name, LEGACY, args, , after, TN_REAL_NVML(name))
#include "shim/api_nvml.def"
#undef TN_NVML
