#include "tests/census/join/grab.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

void from_two(void **p)
{
    if (cudaMalloc(p, 1) != 0) /* want: reached 1 */
        abort();
}
