/* Function names without what a person skips: template arguments, parameters, return types. Pure; any thread. */
#ifndef TENURE_REPORT_REPORT_SHORT_NAME_H
#define TENURE_REPORT_REPORT_SHORT_NAME_H

#include <stddef.h>

/* "std::vector<int> ns::make<float>(int, char const*) const" becomes "ns::make". What cannot be taken apart stays whole. The
 * result ends in NUL and is cut to `size`, which is at least 1. Returns `out`. */
char *tn_short_name(const char *function, char *out, size_t size);

#endif
