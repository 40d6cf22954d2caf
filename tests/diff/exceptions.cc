// C++ exceptions around and inside CUDA calls: thrown in host callbacks and caught there, carried to another thread,
// thrown by allocator wrappers through many frames, while destructors on the way make CUDA calls.
#include "observe.h"

#include <atomic>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

static std::exception_ptr carried;
static std::atomic<int> caught{0};

static void fails(int depth)
{
	if (depth == 0)
		throw std::runtime_error("in a callback");
	std::string local(static_cast<size_t>(depth), 'x');
	fails(depth - 1);
	obs("unreachable", "%s", local.c_str());
}

static void CUDART_CB callback(void *)
{
	try {
		fails(20);
	} catch (const std::runtime_error &) {
		caught++;
		carried = std::current_exception();
	}
}

static void CUDART_CB stream_callback(cudaStream_t, cudaError_t status, void *)
{
	try {
		throw static_cast<int>(status);
	} catch (int code) {
		caught += code == 0;
	}
}

struct Block {
	void *p = nullptr;
	explicit Block(size_t bytes)
	{
		if (cudaMalloc(&p, bytes) != cudaSuccess)
			throw std::bad_alloc();
	}
	Block(const Block &) = delete;
	~Block()
	{
		int code = static_cast<int>(cudaFree(p));
		freed += code == 0;
		failed += code != 0;
	}
	static int freed, failed;
};
int Block::freed, Block::failed;

static void nest(int depth)
{
	Block block(depth == 0 ? TOO_MUCH : 1024);
	if (depth > 0)
		nest(depth - 1);
}

int main()
{
	cudaStream_t s;
	obs_last("stream", cudaStreamCreate(&s));
	obs_last("launch", cudaLaunchHostFunc(s, callback, nullptr));
	obs_last("sync", cudaStreamSynchronize(s));
	obs_code("caught", caught);
	try {
		if (carried)
			std::rethrow_exception(carried);
		obs("carried", "nothing");
	} catch (const std::exception &e) {
		obs("carried", "%s", e.what());
	}
	obs_last("callback", cudaStreamAddCallback(s, stream_callback, nullptr, 0));
	obs_last("sync.2", cudaStreamSynchronize(s));
	obs_code("caught.2", caught);
	for (int round = 0; round < 100; round++) {
		try {
			nest(12);
			obs("nest", "did not throw");
		} catch (const std::bad_alloc &) {
			caught++;
		}
	}
	obs_code("caught.3", caught);
	obs("blocks", "freed=%d,failed=%d", Block::freed, Block::failed);
	obs_last("last", cudaSuccess);
	try {
		Block outer(64);
		throw std::logic_error("past a block");
	} catch (const std::logic_error &e) {
		obs("logic", "%s,%d", e.what(), Block::freed);
	}
	obs_last("destroy", cudaStreamDestroy(s));
	return 0;
}
