/* Printing for the C++ program, which is linked without a C++ library. Any thread. */
#ifndef TENURE_TESTS_PHASES_PLAIN_C_H
#define TENURE_TESTS_PHASES_PLAIN_C_H

#ifdef __cplusplus
extern "C"
#endif
int print_answers(int mark, int phase); /* 0 */

#endif
