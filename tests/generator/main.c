/*
 * generated --seed S --ops N [--only LIST] [--threads T] [--devices D] [--alone] [--fault]
 *           [--resets R] [--survivors] [--placed] [--trace | --list] [--times]
 *
 * Carries out the program that the seed says and prints `hash=` over all observations, `ops=` with the operations that
 * found something to work on, and `live.KIND=` with the bytes left alive. --trace adds a line per operation, in no order
 * between threads; --list only names the operations; --times says on standard error what each kind of them took.
 * LIST is numbers and ranges, 3,5-9, or @FILE with one. One round of 64 operations in R begins with the reset of a
 * device (150; 0: none); with --survivors stream-ordered blocks are not freed before it, and live through it.
 * --placed: whether a free of plain memory waited is neither observed nor relied on, as where a plan places it.
 * --alone: nobody else uses the card, so more than half of it can be asked for. --fault: the last operation is an
 * illegal access. Exit code 2 for usage, 3 where CUDA or memory cannot be had.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/generator/generator.h"

static struct lane *lanes;
static pthread_barrier_t barrier;

static void (*const actions[OP_KINDS])(struct lane *, struct op *) = {
	[OP_ALLOC] = do_alloc, [OP_FREE] = do_free,     [OP_FILL] = do_fill,   [OP_COPY] = do_copy,       [OP_READ] = do_read,
	[OP_STREAM] = do_stream, [OP_EVENT] = do_event, [OP_CAPTURE] = do_capture, [OP_LAUNCH] = do_launch, [OP_POOL] = do_pool,
	[OP_VMM] = do_vmm,     [OP_QUERY] = do_query,   [OP_ERROR] = do_error, [OP_REFUSED] = do_refused, [OP_GATE] = do_gate,
	[OP_CARD] = do_card,   [OP_HAND] = do_hand,     [OP_CONTEXT] = do_context, [OP_FAULT] = do_fault,
};

static void meet(void) { pthread_barrier_wait(&barrier); }

/* What was given goes to the next thread, unless that one still has what it was given before. */
static void exchange(struct lane *l)
{
	struct lane *from = &lanes[(l->thread + program.threads - 1) % program.threads];
	for (int d = 0; d < program.devices; d++) {
		struct block *out = &from->outbox[d], *in = &l->inbox[d];
		if (in->kind != KIND_NONE || out->kind == KIND_NONE)
			continue;
		*in = *out;
		from->live[out->kind] -= (int64_t)out->counted;
		memset(out, 0, sizeof *out);
		l->live[in->kind] += (int64_t)in->counted;
	}
}

static void reset(struct lane *l, struct op *op)
{
	observe_begin(l, op);
	reset_prepare(l, op);
	meet();
	if (op->thread == l->thread)
		reset_device(l, op);
	for (int t = 0; t < program.threads; t++) {
		meet();
		if (t == l->thread)
			reset_forget(l, op);
	}
	observe_end(l);
	meet();
}

static uint64_t *sums; /* by operation */

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run_round(struct lane *l, uint32_t begin)
{
	uint32_t end = begin + ROUND < program.ops ? begin + ROUND : program.ops;
	struct op op;
	op_decide(&op, begin);
	if (op.kind == OP_RESET && op_included(begin))
		reset(l, &op);
	for (uint32_t i = begin; i < end; i++) {
		op_decide(&op, i);
		if (op.kind == OP_RESET || op.thread != l->thread || !op_included(i))
			continue;
		lane_device(l, op.device);
		uint64_t begun = program.times ? now_ns() : 0;
		observe_begin(l, &op);
		actions[op.kind](l, &op);
		observe_end(l);
		if (sums != NULL)
			sums[i] = l->hash;
		l->carried[op.kind]++;
		l->spent_ns[op.kind] += program.times ? now_ns() - begun : 0;
	}
}

static bool any_included(uint32_t begin)
{
	for (uint32_t i = begin; i < begin + ROUND && i < program.ops; i++)
		if (op_included(i))
			return true;
	return false;
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;
	for (uint32_t begin = 0; begin < program.ops; begin += ROUND) {
		if (!any_included(begin))
			continue;
		meet();
		/* One after the other: an exchange reads two lanes. */
		if (l->thread == 0)
			for (int t = 0; t < program.threads; t++)
				exchange(&lanes[t]);
		meet();
		run_round(l, begin);
	}
	for (int d = 0; d < program.devices && !program.fault; d++) {
		if (l->places[d].join == NULL)
			continue;
		lane_device(l, d);
		streams_wait(l);
	}
	return NULL;
}

static int run(void)
{
	pthread_t threads[MAX_THREADS];
	uint64_t hash = 0;
	lanes = calloc((size_t)program.threads, sizeof *lanes);
	if (lanes == NULL || pthread_barrier_init(&barrier, NULL, (unsigned)program.threads) != 0)
		return 3;
	for (int t = 0; t < program.threads; t++)
		lane_begin(&lanes[t], t);
	for (int t = 1; t < program.threads; t++)
		if (pthread_create(&threads[t], NULL, lane_main, &lanes[t]) != 0)
			return 3;
	lane_main(&lanes[0]);
	for (int t = 1; t < program.threads; t++)
		pthread_join(threads[t], NULL);
	for (int t = 0; t < program.threads; t++)
		hash = hash * 0x9E3779B97F4A7C15u + lanes[t].hash;
	printf("hash=%016" PRIx64 "\n", hash);
	return 0;
}

/* One line an operation that was carried out: its index, and what its thread had observed until then. */
static int write_sums(const char *file)
{
	FILE *f = fopen(file, "w");
	if (f == NULL)
		return 3;
	for (uint32_t i = 0; i < program.ops; i++)
		if (sums[i] != 0)
			fprintf(f, "%" PRIu32 " %016" PRIx64 "\n", i, sums[i]);
	return fclose(f) == 0 ? 0 : 3;
}

static void print_live(void)
{
#define KIND_TEXT(name, text) #text,
	static const char *const names[] = {KINDS(KIND_TEXT)};
	for (int k = 1; k < KIND_COUNT; k++) {
		int64_t sum = 0;
		for (int t = 0; t < program.threads; t++)
			sum += lanes[t].live[k];
		printf("live.%s=%" PRId64 "\n", names[k], sum);
	}
}

/* Where the time goes, for whoever weighs the kinds: not an observation, so on standard error. */
static void print_times(void)
{
	for (int k = 0; k < OP_KINDS; k++) {
		uint64_t ns = 0, carried = 0;
		for (int t = 0; t < program.threads; t++) {
			ns += lanes[t].spent_ns[k];
			carried += lanes[t].carried[k];
		}
		if (carried != 0)
			fprintf(stderr, "%-8s %8" PRIu64 " times, %10.1f us each\n", op_kind_name((enum op_kind)k), carried, (double)ns / 1e3 / (double)carried);
	}
}

static void print_list(void)
{
	struct op op;
	char text[160];
	for (uint32_t i = 0; i < program.ops; i++) {
		if (!op_included(i))
			continue;
		op_decide(&op, i);
		op_describe(&op, text, sizeof text);
		printf("%" PRIu32 " %s\n", i, text);
	}
}

/* ---- arguments ---- */

static int usage(void)
{
	fprintf(stderr, "usage: generated --seed S --ops N [--only LIST|@FILE] [--threads T] [--devices D] [--alone] [--fault] [--resets R] [--survivors] [--placed] [--trace|--list] [--times]\n");
	return 2;
}

static int number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return end == text || *end != '\0' || errno != 0 || *out < least || *out > most ? -1 : 0;
}

static int include(const char *list)
{
	char *at = (char *)list;
	while (*at != '\0' && *at != '\n') {
		char *end;
		unsigned long long first = strtoull(at, &end, 10), last = first;
		if (end == at)
			return -1;
		if (*end == '-') {
			at = end + 1;
			last = strtoull(at, &end, 10);
			if (end == at)
				return -1;
		}
		for (unsigned long long i = first; i <= last && i < program.ops; i++)
			program.included[i] = 1;
		at = *end == ',' ? end + 1 : end;
		if (*end != ',' && *end != '\0' && *end != '\n')
			return -1;
	}
	return 0;
}

static int include_only(const char *list)
{
	char *text = NULL;
	size_t size = 0;
	program.included = calloc(program.ops, 1);
	if (program.included == NULL)
		return -1;
	if (*list != '@')
		return include(list);
	FILE *f = fopen(list + 1, "r");
	int code = f == NULL || getline(&text, &size, f) < 0 ? -1 : include(text);
	if (f != NULL)
		fclose(f);
	free(text);
	return code;
}

static int parse(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'}, {"ops", required_argument, NULL, 'n'},
		{"only", required_argument, NULL, 'o'}, {"threads", required_argument, NULL, 't'}, {"devices", required_argument, NULL, 'd'},
		{"alone", no_argument, NULL, 'a'}, {"fault", no_argument, NULL, 'f'}, {"survivors", no_argument, NULL, 'u'}, {"placed", no_argument, NULL, 'p'}, {"trace", no_argument, NULL, 'v'},
		{"list", no_argument, NULL, 'l'},
		{"times", no_argument, NULL, 'm'}, {"resets", required_argument, NULL, 'r'}, {NULL, 0, NULL, 0}};
	const char *only = NULL;
	uint64_t seed = 0, ops = 0, threads = 1, devices = 1, resets = 150;
	int c, bad = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's': bad |= number(optarg, 0, UINT64_MAX, &seed); break;
		case 'n': bad |= number(optarg, 1, 100000000, &ops); break;
		case 'o': only = optarg; break;
		case 't': bad |= number(optarg, 1, MAX_THREADS, &threads); break;
		case 'd': bad |= number(optarg, 1, MAX_DEVICES, &devices); break;
		case 'a': program.alone = true; break;
		case 'f': program.fault = true; break;
		case 'u': program.survivors = true; break;
		case 'p': program.placed = true; break;
		case 'v': program.trace = true; break;
		case 'l': program.list = true; break;
		case 'm': program.times = true; break;
		case 'r': bad |= number(optarg, 0, 1000000, &resets); break;
		default: return -1;
		}
	}
	program.seed = seed;
	program.ops = (uint32_t)ops;
	program.threads = (int)threads;
	program.reset_rounds = (uint32_t)resets;
	program.devices = (int)devices;
	if (bad || ops == 0 || optind != argc || (program.fault && (threads > 1 || devices > 1)))
		return -1;
	return only == NULL ? 0 : include_only(only);
}

int main(int argc, char **argv)
{
	int count = 0;
	if (parse(argc, argv) != 0)
		return usage();
	if (program.list) {
		print_list();
		return 0;
	}
	if (driver_load() != 0)
		return 3;
	int code = (int)drivers[0].p_cuInit(0);
	code = code != 0 ? code : (int)cudaGetDeviceCount(&count);
	code = code != 0 ? code : (int)drivers[0].p_cuDeviceTotalMem(&program.card_bytes, 0);
	if (code != 0 || count < program.devices) {
		fprintf(stderr, "generated: %d of %d devices, code %d\n", count, program.devices, code);
		return 3;
	}
	/* Costs nothing while the program runs: for a difference that does not come again under --trace, which changes the timing. */
	const char *file = getenv("GENERATOR_SUMS");
	if (file != NULL && (sums = calloc(program.ops, sizeof *sums)) == NULL)
		return 3;
	code = run();
	if (code == 0 && file != NULL)
		code = write_sums(file);
	if (code != 0)
		return code;
	uint64_t acted = 0;
	for (int t = 0; t < program.threads; t++)
		acted += lanes[t].acted;
	printf("ops=%" PRIu64 "\n", acted);
	if (!program.fault)
		print_live();
	if (program.times)
		print_times();
	return 0;
}
