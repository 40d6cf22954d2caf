#include "core/buffer.h"

#include <string.h>

#include "core/check.h"
#include "core/probe.h"

struct device_buffer device_buffer_create(const char *name, size_t bytes)
{
    struct device_buffer buf = { .bytes = bytes };
    CU_CHECK(cudaMalloc(&buf.data, bytes));
    buf_dev(name, buf.data, bytes);
    return buf;
}

void device_buffer_release(struct device_buffer *buf)
{
    buf_free(&buf->data);
    buf->bytes = 0;
}

struct pinned_buffer pinned_buffer_create(const char *name, size_t bytes)
{
    struct pinned_buffer buf = { .bytes = bytes };
    size_t tag = strlen(name) + 1;
    CU_CHECK(cudaHostAlloc(&buf.data, bytes, cudaHostAllocPortable));
    memcpy(buf.data, name, tag < bytes ? tag : bytes);
    return buf;
}
