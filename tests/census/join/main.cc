// A program whose allocation lines the census must find in a recorded run. Each line that holds a call says what is to come of it;
// test_join.sh reads these words.
#include <cuda_runtime.h>

#include <cstdlib>

#include "tests/census/join/grab.h"

#define CHECK(call)       \
    do {                  \
        if ((call) != 0)  \
            std::abort(); \
    } while (0)
#define NEW(p, n) CHECK(cudaMalloc(p, n)) // want: macro

static cudaError_t (*through)(void **, size_t) = nullptr;

template <typename T> static T *typed(size_t n)
{
    T *p;
    CHECK(cudaMalloc(&p, n * sizeof(T))); // want: reached 2 (by a template of CUDA's header)
    return p;
}

// Too deep to be inlined away, and its own caller: a path of any depth counts once for a line.
static void nest(int depth)
{
    if (depth > 0)
        nest(depth - 1);
    else
        CHECK(cudaFree(grab(100))); // want: reached 1
}

int main(int argc, char **)
{
    void *p[8];
    CHECK(
        cudaMalloc(&p[0], // want: reached 1
                   4096));
    auto later = [&](size_t n) {
        return cudaMallocHost(&p[1], n); // want: reached 1
    };
    CHECK(later(64));
    CHECK(cudaFree(typed<float>(10)));
    CHECK(cudaFree(typed<double>(10)));
    CHECK(cudaFree(grab(1)));  // want: reached 1
    CHECK(cudaFree(grab(2))); CHECK(cudaFree(grab(3))); // want: reached 2
    NEW(&p[2], 16); // want: reached 1
    through = static_cast<cudaError_t (*)(void **, size_t)>(&cudaMalloc);
    CHECK(through(&p[3], 8)); // the call of no name
    nest(3);
    from_one(&p[4]);
    from_two(&p[5]);
    CHECK(cudaMallocManaged(&p[6], 32) + (cudaMalloc(&p[7], size_t{1} << 60) == cudaErrorMemoryAllocation ? 0 : 1)); // want: reached 2
    cudaGetLastError();
    if (argc > 5)
        CHECK(cudaMalloc(&p[0], 1)); // want: never
    return 0;
}
