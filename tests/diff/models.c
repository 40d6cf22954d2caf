/* Models come and go: the next is loaded before the last is unloaded, a load fails midway and what it had is put back, the old one is loaded
   again, a draft lives beside it. Weights are written from the host while loading, read in between, and gone in one sweep. */
#include "observe.h"

#define LAYERS 12

struct model {
	unsigned char *layer[LAYERS];
	int mark, layers;
};

static cudaStream_t s;
static unsigned char host[3 * MIB];

static size_t layer_bytes(int i) { return i % 4 == 0 ? 2 * MIB + 4096 : i % 4 == 1 ? 700000 : i % 4 == 2 ? 5000 : 64; }

/* From `fails` on a layer asks for more than there is; the codes of what was done. */
static int load(struct model *m, int mark, int layers, int fails)
{
	int code = 0;
	m->mark = mark;
	m->layers = 0;
	for (int i = 0; i < layers; i++) {
		code = (int)cudaMalloc((void **)&m->layer[i], i == fails ? TOO_MUCH : layer_bytes(i));
		if (code != 0)
			return code;
		m->layers++;
		memset(host, mark + i, layer_bytes(i));
		code = (int)cudaMemcpy(m->layer[i], host, layer_bytes(i), cudaMemcpyHostToDevice);
		if (code != 0)
			return code;
	}
	return 0;
}

static int unload(struct model *m)
{
	int code = 0;
	for (int i = m->layers - 1; i >= 0; i--)
		code |= (int)cudaFree(m->layer[i]);
	m->layers = 0;
	return code;
}

/* Layers whose bytes are not what they were loaded with. */
static int wrong(const struct model *m)
{
	int bad = 0;
	for (int i = 0; i < m->layers; i++) {
		int same = cudaMemcpy(host, m->layer[i], layer_bytes(i), cudaMemcpyDeviceToHost) == cudaSuccess;
		for (size_t k = 0; same && k < layer_bytes(i); k++)
			same = host[k] == (unsigned char)(m->mark + i);
		bad += !same;
	}
	return bad;
}

/* What requests do in between: scratch of several sizes, taken and given. */
static int serve(const struct model *m, int requests)
{
	void *p, *q;
	int code = 0;
	for (int i = 0; i < requests; i++) {
		code |= (int)cudaMalloc(&p, 10000 + 512 * (size_t)(i % 5));
		code |= (int)cudaMallocAsync(&q, 4096, s);
		code |= (int)cudaMemcpyAsync(q, m->layer[i % m->layers], 64, cudaMemcpyDeviceToDevice, s);
		code |= (int)cudaMemcpyAsync(p, q, 64, cudaMemcpyDeviceToDevice, s);
		code |= (int)cudaFreeAsync(q, s) | (int)cudaStreamSynchronize(s);
		unsigned char got = 0;
		code |= (int)cudaMemcpy(&got, p, 1, cudaMemcpyDeviceToHost);
		code |= got == (unsigned char)(m->mark + i % m->layers) ? 0 : 1000;
		code |= (int)cudaFree(p);
	}
	return code;
}

int main(void)
{
	static struct model target, draft, next;
	size_t before = 0, after = 0;
	obs_last("init", (int)cudaFree(NULL) | (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	obs_last("target", load(&target, 10, LAYERS, -1));
	obs_last("draft", load(&draft, 40, 4, -1));
	obs_last("serve", serve(&target, 30) | serve(&draft, 30));
	obs_code("wrong", wrong(&target) + wrong(&draft));
	for (int swap = 0; swap < 3; swap++) {
		char key[48];
		/* Before the old one goes. */
		snprintf(key, sizeof key, "swap.%d.load", swap);
		obs_last(key, load(&next, 60 + 20 * swap, LAYERS - 2 * swap, -1));
		snprintf(key, sizeof key, "swap.%d.both", swap);
		obs(key, "%d,%d", serve(&target, 10) | serve(&next, 10), wrong(&target) + wrong(&next) + wrong(&draft));
		snprintf(key, sizeof key, "swap.%d.unload", swap);
		obs_last(key, unload(&target));
		target = next;
		snprintf(key, sizeof key, "swap.%d.after", swap);
		obs(key, "%d,%d", serve(&target, 20), wrong(&target) + wrong(&draft));
	}
	/* A load that fails: what it had goes back, the error is that of a refusal, the old one goes on. */
	obs_last("failed.load", load(&next, 130, LAYERS, 7));
	obs_code("failed.layers", next.layers);
	obs_last("failed.unload", unload(&next));
	obs("failed.old", "%d,%d", serve(&target, 20), wrong(&target) + wrong(&draft));
	/* Unloaded first, then the load fails, then the old one again. */
	obs_last("hot.unload", unload(&target));
	obs_last("hot.failed", load(&next, 150, LAYERS, 3));
	obs_last("hot.back", unload(&next));
	obs_last("hot.old", load(&target, 10, LAYERS, -1));
	obs("hot.serve", "%d,%d", serve(&target, 20), wrong(&target) + wrong(&draft));
	obs_code("query", cudaMemGetInfo(&before, NULL));
	obs_last("unload", unload(&target) | unload(&draft));
	obs_code("query.2", cudaMemGetInfo(&after, NULL));
	obs_code("came_back", after > before);
	obs_last("sync", cudaDeviceSynchronize());
	return 0;
}
