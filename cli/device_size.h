/* How much memory the devices have that a program started from here would see. The driver is asked by a short child process, since one that has
 * started it may not fork any more; no context is made. One thread. */
#ifndef TENURE_CLI_DEVICE_SIZE_H
#define TENURE_CLI_DEVICE_SIZE_H

#include <stdint.h>

#define TN_DEVICES 64 /* more are not asked */

typedef struct tn_device_size { uint64_t total; char name[120]; } tn_device_size;

/* The devices by ordinal; how many there are, or -1 with a phrase in *why where the driver cannot be asked. */
int tn_device_sizes(tn_device_size out[TN_DEVICES], const char **why);

#endif
