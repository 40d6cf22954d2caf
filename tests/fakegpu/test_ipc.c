/* Memory and events between processes. The child is forked before CUDA starts, so both sides start it themselves. */
#include "test_driver.h"

#include <sys/socket.h>
#include <sys/wait.h>

#define BLOCK MIB

static void send_to(int fd, const void *p, size_t n) { ck_assert_int_eq(write(fd, p, n), (ssize_t)n); }
static void receive(int fd, void *p, size_t n) { ck_assert_int_eq(read(fd, p, n), (ssize_t)n); }

struct offer { CUipcMemHandle first, second, inside; CUipcEventHandle event; };

/* Child: exports two neighbours and an event whose record completes late, then stays until told. */
static void export_side(int fd)
{
    struct offer o;
    CUdeviceptr a, b;
    CUevent e;
    char go;
    start();
    CUstream s = new_stream();
    OK(cuMemAlloc(&a, BLOCK));
    OK(cuMemAlloc(&b, BLOCK));
    OK(cuMemsetD8(a, 0xA1, BLOCK));
    OK(cuMemsetD8(b, 0xB2, BLOCK));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&o.first, a));
    OK(cuIpcGetMemHandle(&o.second, b));
    OK(cuIpcGetMemHandle(&o.inside, b + 4096));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    OK(cuIpcGetEventHandle(&o.event, e));
    spin(s, 400);
    OK(cuEventRecord(e, s));
    send_to(fd, &o, sizeof o);
    receive(fd, &go, 1);
    ck_assert_uint_eq(first_byte(b + 77), 0xC3); /* written by the importer */
    send_to(fd, &go, 1);
}

START_TEST(both_neighbours_open_at_their_own_start)
{
    int pair[2], status;
    struct offer o;
    CUdeviceptr a, b, again, base;
    CUevent e;
    size_t n;
    char go = 1;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    pid_t child = fork();
    if (child == 0) {
        export_side(pair[1]);
        _exit(0);
    }
    start();
    receive(pair[0], &o, sizeof o);
    ck_assert_mem_eq(&o.second, &o.inside, sizeof o.second);
    OK(cuIpcOpenMemHandle(&a, o.first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuIpcOpenMemHandle(&b, o.second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ck_assert_uint_eq(first_byte(a), 0xA1);
    ck_assert_uint_eq(first_byte(b), 0xB2);
    OK(cuMemGetAddressRange(&base, &n, b + 5));
    ck_assert_uint_eq(base, b);
    ck_assert_uint_eq(n, BLOCK);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(b)); /* not ours to free */
    OK(cuIpcOpenMemHandle(&again, o.inside, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ck_assert_uint_eq(again, b);
    OK(cuMemsetD8(b, 0xC3, BLOCK));
    OK(cuCtxSynchronize());
    OK(cuIpcOpenEventHandle(&e, o.event));
    ck_assert_int_eq(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    OK(cuEventSynchronize(e));
    send_to(pair[0], &go, 1);
    receive(pair[0], &go, 1);
    OK(cuIpcCloseMemHandle(a));
    OK(cuIpcCloseMemHandle(b));
    OK(cuMemGetAddressRange(&base, &n, b)); /* opened twice */
    OK(cuIpcCloseMemHandle(b));
    GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &n, b));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(only_plain_memory_has_a_handle)
{
    CUdeviceptr p;
    CUipcMemHandle h;
    void *host;
    unsigned capable;
    start();
    CUstream s = new_stream();
    OK(cuMemAllocAsync(&p, 4096, s));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, p));
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, p));
    OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
    ck_assert_uint_eq(capable, 0);
    OK(cuMemAllocHost(&host, 4096));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, (CUdeviceptr)(uintptr_t)host));
    OK(cuMemAlloc(&p, 4096));
    OK(cuIpcGetMemHandle(&h, p));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}
END_TEST

/* ---- VMM handles travel as descriptors ---- */

static void send_fd(int via, int fd)
{
    char byte = 1, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    ck_assert_int_eq(sendmsg(via, &m, 0), 1);
}

static int receive_fd(int via)
{
    int fd;
    char byte, control[CMSG_SPACE(sizeof fd)];
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ck_assert_int_eq(recvmsg(via, &m, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static CUdeviceptr map(CUmemGenericAllocationHandle h)
{
    CUdeviceptr p;
    CUmemAllocationProp prop = device_prop(0);
    CUmemAccessDesc d = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    OK(cuMemMap(p, 2 * MIB, 0, h, 0));
    OK(cuMemSetAccess(p, 2 * MIB, &d, 1));
    return p;
}

START_TEST(an_exported_handle_keeps_its_bytes_after_the_exporter_lets_go)
{
    int pair[2], status;
    CUmemGenericAllocationHandle h;
    char go = 1;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    pid_t child = fork();
    if (child == 0) {
        CUmemAllocationProp prop = device_prop(0);
        CUdeviceptr plain;
        int fd;
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        start();
        OK(cuMemCreate(&h, 2 * MIB, &prop, 0));
        CUdeviceptr p = map(h);
        OK(cuMemsetD8(p, 0x6E, 2 * MIB));
        OK(cuCtxSynchronize());
        OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        send_fd(pair[1], fd);
        receive(pair[1], &go, 1); /* imported */
        OK(cuMemUnmap(p, 2 * MIB));
        OK(cuMemRelease(h));
        OK(cuMemAlloc(&plain, 2 * MIB)); /* must not be the same bytes */
        OK(cuMemsetD8(plain, 0x11, 2 * MIB));
        OK(cuCtxSynchronize());
        send_to(pair[1], &go, 1);
        receive(pair[1], &go, 1);
        _exit(0);
    }
    start();
    int fd = receive_fd(pair[0]);
    OK(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    send_to(pair[0], &go, 1);
    receive(pair[0], &go, 1);
    CUdeviceptr p = map(h);
    ck_assert_uint_eq(first_byte(p + MIB), 0x6E);
    send_to(pair[0], &go, 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(what_cannot_be_exported_is_refused)
{
    CUdeviceptr p;
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop = device_prop(0);
    int fd;
    start();
    OK(cuMemAlloc(&p, 2 * MIB));
    GIVES(CUDA_ERROR_NOT_SUPPORTED, cuMemGetHandleForAddressRange(&fd, p, 2 * MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    OK(cuMemCreate(&h, 2 * MIB, &prop, 0)); /* made without a handle type */
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}
END_TEST

static void fill(TCase *t)
{
    tcase_add_test(t, both_neighbours_open_at_their_own_start);
    tcase_add_test(t, only_plain_memory_has_a_handle);
    tcase_add_test(t, an_exported_handle_keeps_its_bytes_after_the_exporter_lets_go);
    tcase_add_test(t, what_cannot_be_exported_is_refused);
}

int main(void) { return run_tests("ipc", fill); }
