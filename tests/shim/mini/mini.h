/* What the mini driver does on request, and what it counted itself (read at any time, from any thread). */
#ifndef TESTS_SHIM_MINI_MINI_H
#define TESTS_SHIM_MINI_MINI_H

#include <stdint.h>

#define MINI_SIGNAL 12345u      /* an allocation of this size raises SIGUSR1 inside the driver */
#define MINI_ERRNO 23456u       /* an allocation of this size sets errno to MINI_ERRNO_VALUE */
#define MINI_ERRNO_VALUE 71
#define MINI_BAD_ADDRESS 0xbadu /* a free of this fails and sets errno to MINI_ERRNO_VALUE + 1 */

uint64_t mini_allocations(void);
uint64_t mini_frees(void);

#endif
