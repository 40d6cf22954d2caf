// Thread-local destructors that free memory as their threads end, on other threads and on the main one; and a key's.
#include "observe.h"

#include <thread>
#include <vector>

struct Holder {
	const char *name;
	void *block = nullptr;
	explicit Holder(const char *n) : name(n) {}
	void fill() { obs_code(name, cudaMalloc(&block, 4096)); }
	~Holder()
	{
		char key[64];
		snprintf(key, sizeof key, "%s.destroyed", name);
		obs_code(key, cudaFree(block));
	}
};

static thread_local Holder holder("holder");
static Holder global("global");
static pthread_key_t key;

static void at_thread_end(void *p)
{
	size_t f = 0;
	obs_code("key.free", cudaFree(p));
	obs_code("key.query", cudaMemGetInfo(&f, nullptr));
}

static void work()
{
	void *p = nullptr;
	holder.fill();
	obs_code("key.malloc", cudaMalloc(&p, 64));
	pthread_setspecific(key, p);
}

int main()
{
	pthread_key_create(&key, at_thread_end);
	obs_code("init", cudaFree(nullptr));
	global.fill();
	for (int i = 0; i < 3; i++)
		std::thread(work).join();
	std::vector<std::thread> many;
	int codes[8] = {};
	for (int i = 0; i < 8; i++)
		many.emplace_back([&codes, i] {
			std::vector<void *> blocks(50);
			for (auto &p : blocks)
				codes[i] |= static_cast<int>(cudaMalloc(&p, 256));
			for (auto p : blocks)
				codes[i] |= static_cast<int>(cudaFree(p));
		});
	for (auto &t : many)
		t.join();
	int sum = 0;
	for (int c : codes)
		sum |= c;
	obs_code("many", sum);
	holder.fill();
	return 0;
}
