/* A function whose first launch is refused, launched again. */
#include <cuda.h>
#include <stdio.h>

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction f;
    int failures = cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
                   cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&f, module, "nothing");
    int refused = failures ? 0 : (int)cuLaunchKernel(f, 1, 1, 1, 5000, 1, 1, 0, NULL, NULL, NULL);
    for (int i = 0; i < 3 && !failures; i++) failures = cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    printf("failures=%d refused=%d\n", failures, refused);
    return 0;
}
