/* Blocks of three families are made by one thread and freed by the next, on streams of its own, while a fourth thread only queries; and a child
   that was forked off in between touches what it inherited. Contents are the maker's, addresses are unique, a second free is refused. */
#include "observe.h"

#include <sys/wait.h>

#define THREADS 4
#define ROUNDS 40
#define BLOCKS 9

struct hand {
	void *p[BLOCKS];
	int mark;
};

static struct hand hands[THREADS];
static pthread_barrier_t barrier;
static long refused[THREADS], spoiled[THREADS], twice[THREADS], lost[THREADS];
static size_t sizes[BLOCKS] = {100, 513, 70000, 100, 4096, 9000, 100, 2000, 300000};

static int take(int i, void **p, cudaStream_t s)
{
	return i < 3 ? (int)cudaMalloc(p, sizes[i]) : i < 6 ? (int)cudaMallocHost(p, sizes[i]) : (int)cudaMallocAsync(p, sizes[i], s);
}

static int give(int i, void *p, cudaStream_t s)
{
	return i < 3 ? (int)cudaFree(p) : i < 6 ? (int)cudaFreeHost(p) : (int)cudaFreeAsync(p, s);
}

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg;
	struct hand *mine = &hands[me], *theirs = &hands[(me + 1) % THREADS];
	unsigned char *host = malloc(300000);
	cudaStream_t s;
	refused[me] += cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess;
	for (int round = 0; round < ROUNDS; round++) {
		mine->mark = 1 + (me * ROUNDS + round) % 200;
		for (int i = 0; i < BLOCKS; i++) {
			refused[me] += take(i, &mine->p[i], s) != 0;
			refused[me] += cudaMemsetAsync(mine->p[i], mine->mark, sizes[i], s) != cudaSuccess;
		}
		refused[me] += cudaStreamSynchronize(s) != cudaSuccess;
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < BLOCKS; i++) {
			CUdeviceptr base = 0;
			size_t size = 0;
			lost[me] += cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)theirs->p[i]) != CUDA_SUCCESS || size != sizes[i];
			refused[me] += cudaMemcpyAsync(host, theirs->p[i], sizes[i], cudaMemcpyDefault, s) != cudaSuccess;
			refused[me] += cudaStreamSynchronize(s) != cudaSuccess;
			for (size_t k = 0; k < sizes[i]; k++)
				if (host[k] != (unsigned char)theirs->mark) {
					spoiled[me]++;
					break;
				}
			refused[me] += give(i, theirs->p[i], s) != 0;
		}
		refused[me] += cudaStreamSynchronize(s) != cudaSuccess;
		pthread_barrier_wait(&barrier);
		/* Nobody has taken anything since: each address is nobody's. */
		for (int i = 0; i < 6; i++)
			twice[me] += give(i, theirs->p[i], s) == 0;
		pthread_barrier_wait(&barrier);
		cudaGetLastError();
	}
	refused[me] += cudaStreamDestroy(s) != cudaSuccess;
	free(host);
	return NULL;
}

static void child(void *plain, void *ordered)
{
	unsigned char byte = 0;
	pid_t pid = fork();
	int status = -1;
	if (pid == 0) {
		void *p = KEPT;
		CUdeviceptr base = 0;
		obs_last("child.free", cudaFree(plain));
		obs_last("child.free_async", cudaFreeAsync(ordered, NULL));
		obs_out("child.malloc", cudaMalloc(&p, 100), &p);
		obs_last("child.copy", cudaMemcpy(&byte, plain, 1, cudaMemcpyDeviceToHost));
		obs_code("child.range", cuMemGetAddressRange(&base, NULL, (CUdeviceptr)(uintptr_t)plain));
		_exit(5);
	}
	waitpid(pid, &status, 0);
	obs("child", "%d", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
}

static void run(const char *name)
{
	pthread_t thread[THREADS];
	long sums[4] = {0, 0, 0, 0};
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		sums[0] += refused[i];
		sums[1] += spoiled[i];
		sums[2] += twice[i];
		sums[3] += lost[i];
	}
	obs(name, "refused=%ld,spoiled=%ld,twice=%ld,lost=%ld", sums[0], sums[1], sums[2], sums[3]);
}

int main(void)
{
	void *plain, *ordered;
	obs_last("init", (int)cudaMalloc(&plain, 5000) | (int)cudaMallocAsync(&ordered, 5000, NULL) | (int)cudaDeviceSynchronize());
	obs_last("written", (int)cudaMemset(plain, 0x21, 5000) | (int)cudaMemset(ordered, 0x22, 5000) | (int)cudaDeviceSynchronize());
	pthread_barrier_init(&barrier, NULL, THREADS);
	run("threads");
	child(plain, ordered);
	run("threads.again");
	obs_bytes("plain", plain, 0x21, 5000);
	obs_bytes("ordered", ordered, 0x22, 5000);
	obs_last("end", (int)cudaFree(plain) | (int)cudaFreeAsync(ordered, NULL) | (int)cudaDeviceSynchronize());
	return 0;
}
