/* Memory for arrays that the replay goes through at random: with large pages where the kernel gives them on demand, since
 * tens of megabytes in small ones cost a walk of the page tables at almost every step. Ordinary memory otherwise: free()
 * gives it back. Any thread. */
#ifndef TENURE_REPORT_REPORT_BIG_H
#define TENURE_REPORT_REPORT_BIG_H

#include <stddef.h>

/* As malloc. */
void *tn_big_alloc(size_t bytes);
/* As realloc, told how much of the old one is to be kept; NULL leaves the old one as it is. */
void *tn_big_grow(void *old, size_t kept_bytes, size_t bytes);

#endif
