/* Every family of memory, freed by every call there is: what is refused frees nothing, what is taken frees once; interior addresses,
   second frees, and neighbours that must not notice. */
#include "observe.h"

static cudaStream_t s;

static CUdeviceptr device(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

enum { FREE, FREE_HOST, FREE_ASYNC, DRIVER_FREE, DRIVER_FREE_HOST, DRIVER_FREE_ASYNC, UNREGISTER, CALLS };
static const char *const calls[CALLS] = {"cudaFree", "cudaFreeHost", "cudaFreeAsync", "cuMemFree", "cuMemFreeHost", "cuMemFreeAsync", "cudaHostUnregister"};

static int free_by(int call, void *p)
{
	switch (call) {
	case FREE: return (int)cudaFree(p);
	case FREE_HOST: return (int)cudaFreeHost(p);
	case FREE_ASYNC: return (int)cudaFreeAsync(p, s);
	case DRIVER_FREE: return (int)cuMemFree(device(p));
	case DRIVER_FREE_HOST: return (int)cuMemFreeHost(p);
	case DRIVER_FREE_ASYNC: return (int)cuMemFreeAsync(device(p), s);
	default: return (int)cudaHostUnregister(p);
	}
}

static void *make(int kind, size_t bytes)
{
	void *p = NULL;
	int code = kind == 0 ? (int)cudaMalloc(&p, bytes) : kind == 1 ? (int)cudaMallocHost(&p, bytes) : (int)cudaMallocAsync(&p, bytes, s);
	if (code != 0)
		obs("make", "%d", code);
	return p;
}

static int right_call(int kind) { return kind == 0 ? FREE : kind == 1 ? FREE_HOST : FREE_ASYNC; }

static int settle(void) { return (int)cudaStreamSynchronize(s) | (int)cudaGetLastError(); }

int main(void)
{
	static const char *const names[] = {"device", "pinned", "ordered"};
	static const size_t inside[] = {1, 256, 512, 2048, 4095};
	char key[96];
	obs_last("stream", cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	for (int kind = 0; kind < 3; kind++) {
		void *left = make(kind, 4096), *right = make(kind, 4096);
		obs_last(names[kind], (int)cudaMemset(left, 0x71, 4096) | (int)cudaMemset(right, 0x72, 4096) | (int)cudaDeviceSynchronize());
		for (int call = 0; call < CALLS; call++) {
			void *p = make(kind, 4096);
			settle();
			/* A second stream-ordered free of what was plain is not asked for: a card took it, and then never came back. */
			int again_call = call == FREE_ASYNC || call == DRIVER_FREE_ASYNC ? FREE : call;
			int code = free_by(call, p), last = (int)cudaGetLastError();
			int waited = settle();
			int again = code == 0 ? free_by(again_call, p) : free_by(right_call(kind), p);
			snprintf(key, sizeof key, "%s.%s", names[kind], calls[call]);
			obs(key, "%d,last=%d,%d,then=%d,last=%d", code, last, waited, again, (int)cudaGetLastError());
			settle();
		}
		for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
			for (int call = 0; call < UNREGISTER; call++) {
				int code = free_by(call, (char *)left + inside[i]);
				snprintf(key, sizeof key, "%s.inside.%zu.%s", names[kind], inside[i], calls[call]);
				obs(key, "%d,last=%d", code, (int)cudaGetLastError());
			}
		snprintf(key, sizeof key, "%s.left", names[kind]);
		obs_bytes(key, left, 0x71, 4096);
		snprintf(key, sizeof key, "%s.right", names[kind]);
		obs_bytes(key, right, 0x72, 4096);
		snprintf(key, sizeof key, "%s.end", names[kind]);
		obs(key, "%d,%d,%d", free_by(right_call(kind), left), free_by(right_call(kind), right), settle());
	}
	return 0;
}
