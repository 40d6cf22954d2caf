// The header is one for C++ too.
#include <tenure.h>

#include "tests/phases/plain_c.h"

int main()
{
    return print_answers(tenure_mark("from C++"), tenure_phase(TENURE_SERVING));
}
