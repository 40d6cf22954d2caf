#include "tests/phases/plain_c.h"

#include <stdio.h>

int print_answers(int mark, int phase)
{
    printf("mark %d phase %d\n", mark, phase);
    return 0;
}
