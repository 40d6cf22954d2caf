/* What the driver says of the mapping that a block lies in: 2 MiB for blocks up to that, multiples of it for others, of plain and of pinned memory.
   A block of more than 1 MiB begins at a mapping of its own, with a number of its own, which its successor does not get. */
#include "observe.h"

static const size_t sizes[] = {1, 4097, 65536, MIB - 1, MIB, MIB + 1, 2 * MIB, 2 * MIB + 1, 3 * MIB, 8 * MIB};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void *take(int kind, size_t bytes)
{
	void *p = NULL;
	int code;
	switch (kind) {
	case 0: code = (int)cudaMalloc(&p, bytes); break;
	case 1: code = (int)cuMemAlloc((CUdeviceptr *)&p, bytes); break;
	case 2: code = (int)cudaMallocHost(&p, bytes); break;
	case 3: code = (int)cudaHostAlloc(&p, bytes, cudaHostAllocPortable | cudaHostAllocWriteCombined); break;
	default: code = (int)cuMemAllocHost(&p, bytes); break;
	}
	return code == 0 ? p : NULL;
}

static int give(int kind, void *p)
{
	return kind < 2 ? (int)cudaFree(p) : (int)cudaFreeHost(p);
}

static uint64_t ask(CUpointer_attribute what, const void *p)
{
	uint64_t value = 0;
	return cuPointerGetAttribute(&value, what, (CUdeviceptr)(uintptr_t)p) == CUDA_SUCCESS ? value : 0;
}

int main(void)
{
	static const char *const names[] = {"plain", "driver", "pinned", "portable", "driver_pinned"};
	uint64_t last_block = 0;
	char key[64];
	obs_code("init", cudaFree(NULL));
	for (int kind = 0; kind < 5; kind++)
		for (int round = 0; round < 2; round++) {
			void *at[SIZES];
			uint64_t numbers[SIZES];
			int same = 0, ends = 0;
			for (size_t i = 0; i < SIZES; i++) {
				at[i] = take(kind, sizes[i]);
				uint64_t base = ask(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at[i]), bytes = ask(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at[i]);
				numbers[i] = ask(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, at[i]);
				snprintf(key, sizeof key, "%s.%d.%zu", names[kind], round, sizes[i]);
				uint64_t offset = (uint64_t)(uintptr_t)at[i] - base;
				obs(key, "%llu,%s,inside=%d", (unsigned long long)bytes, sizes[i] <= MIB ? "any" : offset == 0 && base % (2 * MIB) == 0 ? "begins" : "within",
				    offset + sizes[i] <= bytes);
			}
			for (size_t i = 0; i < SIZES; i++)
				for (size_t j = 0; j < i; j++)
					same += sizes[i] > MIB && numbers[i] == numbers[j];
			snprintf(key, sizeof key, "%s.%d.numbers", names[kind], round);
			obs(key, "same=%d,none=%d,new=%d", same, numbers[SIZES - 1] == 0, numbers[SIZES - 1] != last_block);
			last_block = numbers[SIZES - 1];
			for (size_t i = 0; i < SIZES; i++)
				ends |= give(kind, at[i]);
			snprintf(key, sizeof key, "%s.%d.end", names[kind], round);
			obs_code(key, ends);
		}
	return 0;
}
