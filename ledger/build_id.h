/* The build-id by which an executable is known. System calls alone, no memory and no state, so it also runs inside a host's first CUDA call; any
 * thread. */
#ifndef TENURE_LEDGER_BUILD_ID_H
#define TENURE_LEDGER_BUILD_ID_H

#include <stddef.h>

/* The GNU build-id of the 64-bit ELF file at `path` as hexadecimal digits, cut where `bytes` of room are too few; "" where there is none or the
 * file cannot be read. */
void tn_build_id_of_file(const char *path, char *hex, size_t bytes);

#endif
