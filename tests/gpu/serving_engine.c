/*
 * An engine in small that serves: weights from pinned staging, a pool of keys and values sized from the device's free memory, then requests that
 * each take and give back memory on two streams, plain workspace and pinned staging. It knows of Tenure only when it says, by tenure.h, that it
 * serves. Built against the static and the shared cudart (build.sh; Bazel builds the shared one, which the fake card can run). Standard output
 * has no addresses, times or free memory, and what a request answers does not depend on where its blocks lie: every run prints the same.
 *
 *     serving_engine [--requests N] [--kv-cap MIB] [--slice N] [--worker]
 *
 * With --worker it says {"gate": 1} and reads a line before it starts CUDA, then {"ready": ...}, and answers each further line with --slice requests: one
 * JSON object with the microseconds a request and the digest of the answers, as bench_torch_pairs.py wants it.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/tenure.h"
#include "tests/gpu/serving_engine_kernels.h"

#define MIB ((size_t)1 << 20)
#define LAYERS 12
#define WEIGHT_BYTES (6 * MIB)
#define ROW ((size_t)1024)     /* bytes of a token in a layer's activations, and of its key and of its value */
#define BLOCK_TOKENS 16        /* tokens a block of the pool */
#define BLOCK_BYTES (BLOCK_TOKENS * ROW)
#define KV_PERCENT 60          /* of the free memory, for keys and values together */
#define ANSWER_BYTES ((size_t)4096)

typedef struct engine {
	cudaStream_t compute, copies;
	cudaEvent_t arrived, done;
	char *weight[LAYERS];
	char *keys, *values;
	size_t blocks; /* in each of keys and values */
	CUfunction mix, poke;
	__typeof__(&cuLaunchKernel) launch;
} engine;

static void check(int code, const char *what, int line)
{
	if (code == 0)
		return;
	fprintf(stderr, "serving_engine: line %d: %s = %d\n", line, what, code);
	exit(1);
}
#define CHECK(call) check((int)(call), #call, __LINE__)

static uint64_t digest_of(uint64_t digest, const void *data, size_t bytes)
{
	const unsigned char *at = data;
	for (size_t i = 0; i < bytes; i++)
		digest = (digest ^ at[i]) * 1099511628211ull;
	return digest;
}

/* The driver's entry points come from the runtime, so that neither build needs libcuda at link time. */
static void *driver_entry(const char *name)
{
	void *entry = NULL;
	enum cudaDriverEntryPointQueryResult found;
	CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found));
	if (found != cudaDriverEntryPointSuccess || entry == NULL)
		check(1, name, __LINE__);
	return entry;
}

static void load_kernels(engine *e)
{
	__typeof__(&cuModuleLoadData) load = (__typeof__(&cuModuleLoadData))driver_entry("cuModuleLoadData");
	__typeof__(&cuModuleGetFunction) get = (__typeof__(&cuModuleGetFunction))driver_entry("cuModuleGetFunction");
	CUmodule module;
	e->launch = (__typeof__(&cuLaunchKernel))driver_entry("cuLaunchKernel");
	CHECK(load(&module, serving_engine_ptx));
	CHECK(get(&e->mix, module, "mix"));
	CHECK(get(&e->poke, module, "poke"));
}

/* Words of a block, each by what it was and `salt`, in place. */
static void mix(engine *e, void *block, size_t bytes, uint32_t salt)
{
	uint32_t words = (uint32_t)(bytes / sizeof(uint32_t));
	void *args[] = {&block, &words, &salt};
	CHECK(e->launch(e->mix, (words + 255) / 256, 1, 1, 256, 1, 1, 0, e->compute, args, NULL));
}

static void poke(engine *e, char *word)
{
	void *args[] = {&word};
	CHECK(e->launch(e->poke, 1, 1, 1, 1, 1, 1, 0, e->compute, args, NULL));
}

static void fill(char *at, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i += sizeof seed) {
		seed = seed * 1664525u + 1013904223u;
		memcpy(at + i, &seed, sizeof seed);
	}
}

static void load_weights(engine *e)
{
	char *staging;
	CHECK(cudaHostAlloc((void **)&staging, WEIGHT_BYTES, cudaHostAllocDefault));
	memset(staging, 0, WEIGHT_BYTES);
	for (int layer = 0; layer < LAYERS; layer++) {
		fill(staging, ANSWER_BYTES, (uint32_t)layer + 1);
		CHECK(cudaMalloc((void **)&e->weight[layer], WEIGHT_BYTES));
		CHECK(cudaMemcpyAsync(e->weight[layer], staging, WEIGHT_BYTES, cudaMemcpyHostToDevice, e->copies));
		CHECK(cudaStreamSynchronize(e->copies));
	}
	CHECK(cudaFreeHost(staging));
}

/* Half of a share of the free memory for keys, half for values, both below the cap. What is free differs between runs and goes to standard error. */
static void make_pool(engine *e, size_t cap)
{
	size_t free_bytes, total, bytes;
	CHECK(cudaMemGetInfo(&free_bytes, &total));
	bytes = free_bytes / 100 * KV_PERCENT;
	if (bytes > cap)
		bytes = cap;
	e->blocks = bytes / 2 / BLOCK_BYTES;
	fprintf(stderr, "free_mib=%zu total_mib=%zu bounded_by=%s\n", free_bytes / MIB, total / MIB, bytes == cap ? "cap" : "free memory");
	printf("kv_blocks=%zu\n", e->blocks);
	if (e->blocks < 64)
		check(1, "too little memory is free", __LINE__);
	CHECK(cudaMalloc((void **)&e->keys, e->blocks * BLOCK_BYTES));
	CHECK(cudaMalloc((void **)&e->values, e->blocks * BLOCK_BYTES));
}

/* One layer: scratch of the stream, and the tokens' keys and values into the request's blocks, which any number of requests before may have used. */
static void layer_of(engine *e, int layer, char *hidden, char *workspace, size_t tokens, size_t first_block)
{
	size_t bytes = tokens * ROW, scratch_bytes = tokens * tokens * sizeof(float);
	char *scratch;
	mix(e, hidden, bytes, (uint32_t)layer);
	CHECK(cudaMallocAsync((void **)&scratch, scratch_bytes, e->compute));
	CHECK(cudaMemsetAsync(scratch, layer + 1, scratch_bytes, e->compute));
	poke(e, scratch + 4 * (size_t)layer);
	CHECK(cudaMemcpyAsync(workspace + (size_t)layer * 64, scratch, 64, cudaMemcpyDeviceToDevice, e->compute));
	CHECK(cudaFreeAsync(scratch, e->compute));
	for (size_t token = 0; token < tokens; token += BLOCK_TOKENS) {
		size_t block = (first_block + token / BLOCK_TOKENS) % e->blocks, part = BLOCK_BYTES;
		if (bytes - token * ROW < part)
			part = bytes - token * ROW;
		CHECK(cudaMemcpyAsync(e->keys + block * BLOCK_BYTES, hidden + token * ROW, part, cudaMemcpyDeviceToDevice, e->compute));
		CHECK(cudaMemcpyAsync(e->values + block * BLOCK_BYTES, e->weight[layer] + token * ROW, part, cudaMemcpyDeviceToDevice, e->compute));
	}
}

/* Answers request `number`; the digest of what was read back. */
static uint64_t answer(engine *e, unsigned number, uint64_t digest)
{
	size_t tokens = 32 + (size_t)number * 37 % 160, bytes = tokens * ROW, first_block = (size_t)number * 11 % e->blocks;
	char *staging, *workspace, *prompt, *hidden;
	CHECK(cudaHostAlloc((void **)&staging, bytes + ANSWER_BYTES, cudaHostAllocDefault));
	for (size_t token = 0; token < tokens; token++) {
		memset(staging + token * ROW, (int)token, ROW);
		fill(staging + token * ROW, 64, number * 1000003u + (uint32_t)token);
	}
	CHECK(cudaMalloc((void **)&workspace, bytes + ANSWER_BYTES));
	CHECK(cudaMallocAsync((void **)&prompt, bytes, e->copies));
	CHECK(cudaMemcpyAsync(prompt, staging, bytes, cudaMemcpyHostToDevice, e->copies));
	CHECK(cudaEventRecord(e->arrived, e->copies));
	CHECK(cudaMemsetAsync(workspace, (int)number, ANSWER_BYTES, e->compute));
	CHECK(cudaMallocAsync((void **)&hidden, bytes, e->compute));
	CHECK(cudaStreamWaitEvent(e->compute, e->arrived, 0));
	CHECK(cudaMemcpyAsync(hidden, prompt, bytes, cudaMemcpyDeviceToDevice, e->compute));
	CHECK(cudaEventRecord(e->done, e->compute));
	for (int layer = 0; layer < LAYERS; layer++)
		layer_of(e, layer, hidden, workspace, tokens, first_block);
	/* A row of the activations, of the keys, of the values, and what the scratch left. */
	CHECK(cudaMemcpyAsync(workspace + 1024, hidden + bytes - ROW, 1024, cudaMemcpyDeviceToDevice, e->compute));
	CHECK(cudaMemcpyAsync(workspace + 2048, e->keys + first_block * BLOCK_BYTES, 1024, cudaMemcpyDeviceToDevice, e->compute));
	CHECK(cudaMemcpyAsync(workspace + 3072, e->values + first_block * BLOCK_BYTES, 1024, cudaMemcpyDeviceToDevice, e->compute));
	CHECK(cudaMemcpyAsync(staging + bytes, workspace, ANSWER_BYTES, cudaMemcpyDeviceToHost, e->compute));
	CHECK(cudaFreeAsync(hidden, e->compute));
	CHECK(cudaStreamWaitEvent(e->copies, e->done, 0));
	CHECK(cudaFreeAsync(prompt, e->copies));
	CHECK(cudaStreamSynchronize(e->compute));
	digest = digest_of(digest, staging + bytes, ANSWER_BYTES);
	CHECK(cudaFree(workspace));
	CHECK(cudaFreeHost(staging));
	return digest;
}

#define DIGEST_START 14695981039346656037ull

/* All requests of a slice, always the same ones: their digest, and in *us the microseconds of one on average. */
static uint64_t slice(engine *e, unsigned requests, double *us)
{
	uint64_t digest = DIGEST_START;
	struct timespec began, ended;
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (unsigned number = 1; number <= requests; number++)
		digest = answer(e, number, digest);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	*us = ((double)(ended.tv_sec - began.tv_sec) * 1e6 + (double)(ended.tv_nsec - began.tv_nsec) / 1e3) / requests;
	return digest;
}

static void start(engine *e, size_t cap, unsigned warm)
{
	double us;
	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&e->compute, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&e->copies, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&e->arrived, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&e->done, cudaEventDisableTiming));
	load_kernels(e);
	load_weights(e);
	make_pool(e, cap);
	slice(e, warm, &us);
	tenure_phase(TENURE_SERVING);
}

static int work(engine *e, size_t cap, unsigned requests)
{
	char line[64];
	double us;
	printf("{\"gate\": 1}\n");
	if (fgets(line, sizeof line, stdin) == NULL)
		return 0;
	/* What loading prints is no JSON: its line goes where the rest of what differs goes. */
	FILE *answers = fdopen(dup(1), "w");
	if (answers == NULL || dup2(2, 1) != 1)
		check(1, "dup", __LINE__);
	start(e, cap, requests);
	fprintf(answers, "{\"ready\": \"serving_engine\", \"variants\": [\"requests\"]}\n");
	fflush(answers);
	while (fgets(line, sizeof line, stdin) != NULL) {
		uint64_t digest = slice(e, requests, &us);
		fprintf(answers, "{\"times\": [%.3f], \"digest\": \"%016llx\"}\n", us, (unsigned long long)digest);
		fflush(answers);
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned requests = 200, in_slice = 20;
	size_t cap = 8192 * MIB;
	int worker = 0;
	engine e;
	double us;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--worker") == 0)
			worker = 1;
		else if (strcmp(argv[i], "--requests") == 0 && i + 1 < argc)
			requests = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--slice") == 0 && i + 1 < argc)
			in_slice = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--kv-cap") == 0 && i + 1 < argc)
			cap = strtoul(argv[++i], NULL, 10) * MIB;
		else
			requests = 0;
	}
	if (requests == 0 || in_slice == 0 || cap == 0) {
		fprintf(stderr, "usage: serving_engine [--requests N] [--kv-cap MIB] [--slice N] [--worker]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (worker)
		return work(&e, cap, in_slice);
	start(&e, cap, 1);
	printf("serving\n");
	for (unsigned number = 1; number <= requests; number++)
		printf("%u %016llx\n", number, (unsigned long long)answer(&e, number, DIGEST_START));
	slice(&e, requests, &us);
	fprintf(stderr, "request_ms mean=%.3f\n", us / 1e3);
	CHECK(cudaDeviceSynchronize());
	printf("done\n");
	return 0;
}
