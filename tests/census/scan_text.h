/* Scans a text as if it were a file. For the tests of census/; the text is copied into memory that only the test sees. */
#ifndef TENURE_TESTS_CENSUS_SCAN_TEXT_H
#define TENURE_TESTS_CENSUS_SCAN_TEXT_H

#include <stddef.h>

/* A descriptor that reads `size` bytes of `text` from its start; the test closes it. */
int text_file(const char *text, size_t size);
/* The uses in a text, "1 call cudaMalloc; 3-5 mention cudaFree" (first and last line where they differ from the name's),
 * with "macro" and "member" before the name where they apply; or "unread: WHY". `names` are added as wrappers (NULL at the end).
 * Valid until the next call. */
const char *uses_of(const char *text, size_t size, const char *const *names);

#endif
