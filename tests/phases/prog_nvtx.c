/* NVTX calls of every kind that is told on, and one allocation in each range. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

static void take(size_t bytes)
{
    void *p = NULL;
    cudaMalloc(&p, bytes);
    cudaFree(p);
}

static void *thread(void *arg)
{
    printf("thread level %d\n", nvtxRangePushA("in a thread"));
    take(300);
    nvtxRangePop();
    return arg;
}

static void CUDART_CB host_function(void *text) { nvtxMarkA(text); }

int main(int argc, char **argv)
{
    char text[32];
    for (int i = 0; argc > 1 && i < atoi(argv[1]); i++) { /* and no two of them the same */
        if (i == 0) take(1);
        snprintf(text, sizeof text, "step %d", i);
        nvtxRangePushA(text);
        nvtxRangePop();
    }
    if (argc > 1) return 0;
    pthread_t t;
    nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE, .messageType = NVTX_MESSAGE_TYPE_ASCII, .message.ascii = "by attributes"};
    nvtxRangePushA("before CUDA starts"); /* as a program does that loads its weights in a range */
    take(100);
    nvtxRangePop();
    nvtxMarkA("plain mark");
    nvtxMarkW(L"wide \u00e4 mark");
    nvtxMarkEx(&a);
    printf("level %d\n", nvtxRangePushA("outer"));
    printf("level %d\n", nvtxRangePushEx(&a));
    take(200);
    printf("level %d\n", nvtxRangePop());
    printf("level %d\n", nvtxRangePop());
    printf("level %d\n", nvtxRangePop());
    nvtxRangeId_t id = nvtxRangeStartA("started"), other = nvtxRangeStartA("other");
    printf("ids %d %d\n", id != 0, id != other);
    nvtxRangeEnd(id);
    nvtxRangeEnd(other);
    nvtxDomainHandle_t domain = nvtxDomainCreateA("engine");
    nvtxEventAttributes_t registered = a;
    registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    registered.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainMarkEx(domain, &registered);
    cudaLaunchHostFunc(NULL, host_function, "in a host function");
    cudaDeviceSynchronize();
    nvtxDomainRangePushEx(domain, &registered);
    nvtxDomainRangePop(domain);
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    return 0;
}
