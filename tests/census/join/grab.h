/* The program's own allocator and two files of one name. */
#ifndef TENURE_TESTS_CENSUS_JOIN_GRAB_H
#define TENURE_TESTS_CENSUS_JOIN_GRAB_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
void *grab(size_t n);
void from_one(void **p);
void from_two(void **p);
#ifdef __cplusplus
}
#endif

#endif
