/* A captured address is freed, memory is allocated again, the graph is replayed; then the same after an exec update. */
#include "observe.h"

int main(void)
{
	cudaStream_t s;
	cudaGraph_t graph = NULL, second = NULL;
	cudaGraphExec_t exec = NULL;
	cudaGraphExecUpdateResultInfo info;
	unsigned char *p, *q, *r, got = 0;
	obs_code("made", (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) | (int)cudaMalloc((void **)&p, MIB) |
	                     (int)cudaMalloc((void **)&r, MIB));
	CUfunction slow_fill = obs_kernel("fake_slow_fill");
	obs_last("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	obs_last("memset", cudaMemsetAsync(p, 0x61, 64, s));
	obs_code("kernel", obs_slow_fill(slow_fill, s, p + 64, 0x62, 64, 1));
	obs_last("end", cudaStreamEndCapture(s, &graph));
	obs_last("instantiate", cudaGraphInstantiateWithFlags(&exec, graph, 0));
	obs_last("launch", (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s));
	obs_bytes("p", p, 0x61, 64);
	obs_bytes("p.kernel", p + 64, 0x62, 64);
	obs_last("free", cudaFree(p));
	obs_last("alloc", cudaMalloc((void **)&q, MIB));
	obs_last("fill", (int)cudaMemset(q, 0, 128) | (int)cudaDeviceSynchronize());
	obs_last("replay", (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s));
	obs_last("read", cudaMemcpy(&got, q, 1, cudaMemcpyDeviceToHost));
	obs_code("same_address", p == q);
	obs_code("hit_if_same", (p == q) == (got == 0x61));

	obs_last("begin.2", cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	obs_last("memset.2", cudaMemsetAsync(r, 0x63, 64, s));
	obs_code("kernel.2", obs_slow_fill(slow_fill, s, r + 64, 0x64, 64, 1));
	obs_last("end.2", cudaStreamEndCapture(s, &second));
	int code = (int)cudaGraphExecUpdate(exec, second, &info);
	obs("update", "%d,%d", code, (int)info.result);
	obs_last("launch.2", (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s));
	obs_bytes("r", r, 0x63, 64);
	obs_bytes("r.kernel", r + 64, 0x64, 64);
	/* A graph of another shape is refused, and the old one still runs. */
	cudaGraph_t third = NULL;
	obs_last("begin.3", cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	obs_last("memset.3", cudaMemsetAsync(r, 0x65, 64, s));
	obs_last("end.3", cudaStreamEndCapture(s, &third));
	code = (int)cudaGraphExecUpdate(exec, third, &info);
	obs("update.refused", "%d,%d,last=%d", code, (int)info.result, (int)cudaGetLastError());
	obs_last("launch.3", (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s));
	obs_bytes("r.3", r, 0x63, 64);
	obs_last("destroy", (int)cudaGraphExecDestroy(exec) | (int)cudaGraphDestroy(graph) | (int)cudaGraphDestroy(second) |
	                        (int)cudaGraphDestroy(third));
	obs_last("frees", (int)cudaFree(q) | (int)cudaFree(r));
	return 0;
}
