/* Three swaps of models, and beside it another process that uses CUDA and nothing of ours:
 *
 *     swap_program watch IN OUT   a bare process: answers each line of the pipe IN with the free MiB that it sees, in the pipe OUT
 *     swap_program IN OUT         loads and unloads models, and prints after each step what the watcher sees
 *
 * A model's layers are written from the host, are all of one size, which is no other model's, and go in one sweep. */
#define _GNU_SOURCE
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define LAYERS 8

typedef struct model { CUdeviceptr layer[LAYERS]; size_t bytes; int layers, mark; } model;

static unsigned char host[16 * MIB], back[16 * MIB];

static void begin(void)
{
    CUdevice device;
    CUcontext context;
    if (cuInit(0) != 0 || cuDeviceGet(&device, 0) != 0 || cuDevicePrimaryCtxRetain(&context, device) != 0 || cuCtxSetCurrent(context) != 0) exit(1);
}

static int watch(FILE *in, FILE *out)
{
    char line[16];
    begin();
    while (fgets(line, sizeof line, in)) {
        size_t free_bytes = 0, total;
        if (cuMemGetInfo(&free_bytes, &total) != 0) return 1;
        fprintf(out, "%zu\n", free_bytes / MIB);
        fflush(out);
    }
    return 0;
}

static void step(const char *name, int code, FILE *in, FILE *out)
{
    char line[32] = "?";
    fputs("x\n", in);
    fflush(in);
    if (!fgets(line, sizeof line, out)) exit(1);
    printf("%s %d %s", name, code, line);
    fflush(stdout);
}

/* The layer at `fails` is larger than any card. */
static int load(model *m, size_t bytes, int mark, int fails)
{
    *m = (model){.bytes = bytes, .mark = mark};
    for (int i = 0; i < LAYERS; i++) {
        int code = (int)cuMemAlloc(&m->layer[i], i == fails ? (size_t)4 << 40 : bytes);
        if (code != 0) return code;
        m->layers++;
        memset(host, mark + i, bytes);
        if ((code = (int)cuMemcpyHtoD(m->layer[i], host, bytes)) != 0) return code;
    }
    return 0;
}

static int unload(model *m)
{
    int code = 0;
    while (m->layers > 0) code |= (int)cuMemFree(m->layer[--m->layers]);
    return code;
}

/* Layers that are not as they were loaded. */
static int wrong(const model *m)
{
    int bad = 0;
    for (int i = 0; i < m->layers; i++) {
        memset(host, m->mark + i, m->bytes);
        bad += cuMemcpyDtoH(back, m->layer[i], m->bytes) != 0 || memcmp(back, host, m->bytes) != 0;
    }
    return bad;
}

int main(int argc, char **argv)
{
    static model target, draft, next;
    int watches = argc == 4 && strcmp(argv[1], "watch") == 0;
    if (argc < 3) return 2;
    FILE *in = fopen(argv[argc - 2], watches ? "r" : "w"), *out = fopen(argv[argc - 1], watches ? "w" : "r");
    if (!in || !out) return 2;
    if (watches) return watch(in, out);
    begin();
    step("start", 0, in, out);
    step("target", load(&target, 8 * MIB, 10, -1), in, out);
    step("draft", load(&draft, 4 * MIB, 30, -1), in, out);
    /* The draft is swapped, the target serves on. */
    step("draft_unloaded", unload(&draft), in, out);
    step("draft_swapped", load(&draft, 6 * MIB, 50, -1), in, out);
    /* The next target before the old one goes. */
    step("next", load(&next, 10 * MIB, 70, -1), in, out);
    step("both", wrong(&target) + wrong(&draft) + wrong(&next), in, out);
    step("target_unloaded", unload(&target), in, out);
    target = next;
    /* A load that fails half way: what it had goes back, the old one is as it was. */
    step("failed", load(&next, 12 * MIB, 90, 5), in, out);
    step("failed_unloaded", unload(&next), in, out);
    step("intact", wrong(&target) + wrong(&draft), in, out);
    step("all_unloaded", unload(&target) | unload(&draft), in, out);
    return 0;
}
