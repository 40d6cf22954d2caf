/* Sharing device memory with another process by handle. The two processes fork
 * before CUDA starts in either; the exporter sends handles down a pipe. */
#include "test_cudart_common.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct message {
    cudaIpcMemHandle_t first, second, second_inside;
};

static int to_importer[2], to_exporter[2];

static int import_all(void)
{
    PFN_cuMemGetAddressRange_v3020 range;
    struct message m;
    CUdeviceptr base = 0;
    size_t size = 0;
    char byte = 0;
    void *a = NULL, *b = NULL;

    if (read(to_importer[0], &m, sizeof m) != (ssize_t)sizeof m)
        return 10;
    if (cudaSetDevice(0) != cudaSuccess)
        return 11;
    if (cudaIpcOpenMemHandle(&a, m.first, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess)
        return 12;
    if (cudaIpcOpenMemHandle(&b, m.second, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess)
        return 13;
    range = DRIVER(cuMemGetAddressRange, 3020);
    if (range(&base, &size, (CUdeviceptr)(size_t)b) != CUDA_SUCCESS || base != (CUdeviceptr)(size_t)b
        || size != MIB)
        return 14;
    if (cudaMemcpy(&byte, a, 1, cudaMemcpyDeviceToHost) != cudaSuccess || byte != 0x11)
        return 15;
    if (cudaMemcpy(&byte, (char *)b + MIB - 1, 1, cudaMemcpyDeviceToHost) != cudaSuccess
        || byte != 0x22)
        return 16;
    if (memcmp(&m.second, &m.second_inside, sizeof m.second) != 0)
        return 17;
    if (cudaMemset(b, 0x33, 1) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        return 18;
    if (cudaIpcCloseMemHandle(a) != cudaSuccess || cudaIpcCloseMemHandle(b) != cudaSuccess)
        return 19;
    return write(to_exporter[1], "d", 1) == 1 ? 0 : 20;
}

START_TEST(each_block_opens_at_its_own_start_with_its_own_bytes)
{
    struct message m;
    char byte = 0;
    int status = -1;
    char *a, *b;
    pid_t importer;

    ck_assert_int_eq(pipe(to_importer), 0);
    ck_assert_int_eq(pipe(to_exporter), 0);
    importer = fork();
    if (importer == 0)
        _exit(import_all());
    OK(cudaMalloc((void **)&a, MIB));
    OK(cudaMalloc((void **)&b, MIB));
    OK(cudaMemset(a, 0x11, MIB));
    OK(cudaMemset(b, 0x22, MIB));
    OK(cudaDeviceSynchronize());
    OK(cudaIpcGetMemHandle(&m.first, a));
    OK(cudaIpcGetMemHandle(&m.second, b));
    OK(cudaIpcGetMemHandle(&m.second_inside, b + 4096));
    ck_assert_int_eq(write(to_importer[1], &m, sizeof m), (int)sizeof m);
    ck_assert_int_eq(waitpid(importer, &status, 0), importer);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    OK(cudaMemcpy(&byte, b, 1, cudaMemcpyDeviceToHost));
    ck_assert_int_eq(byte, 0x33);
}
END_TEST

START_TEST(stream_ordered_managed_and_pinned_memory_is_not_exported)
{
    cudaIpcMemHandle_t h;
    void *p;

    OK(cudaMallocAsync(&p, MIB, NULL));
    OK(cudaDeviceSynchronize());
    IS(cudaIpcGetMemHandle(&h, p), cudaErrorInvalidValue);
    OK(cudaMallocManaged(&p, MIB, cudaMemAttachGlobal));
    IS(cudaIpcGetMemHandle(&h, p), cudaErrorInvalidValue);
    OK(cudaMallocHost(&p, MIB));
    IS(cudaIpcGetMemHandle(&h, p), cudaErrorInvalidValue);
    IS(cudaIpcGetMemHandle(&h, &h), cudaErrorInvalidValue);
}
END_TEST

START_TEST(closing_what_was_not_opened_is_refused)
{
    void *p;

    OK(cudaMalloc(&p, 64));
    ck_assert_int_ne(cudaIpcCloseMemHandle(p), cudaSuccess);
    OK(cudaFree(p));
}
END_TEST

RUN_TESTS("ipc", each_block_opens_at_its_own_start_with_its_own_bytes,
          stream_ordered_managed_and_pinned_memory_is_not_exported,
          closing_what_was_not_opened_is_refused)
