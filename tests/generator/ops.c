/* What a seed says: kinds of operations by weight, and the places and sizes that each works on. */
#include <stdio.h>

#include "tests/generator/generator.h"

struct program program;

/* Out of 1000; what one kind does not get goes to the first. */
static const struct {
	const char *name;
	unsigned weight;
} kinds[OP_KINDS] = {
	[OP_ALLOC] = {"allocate", 225}, [OP_FREE] = {"free", 160},   [OP_FILL] = {"fill", 120},   [OP_COPY] = {"copy", 130},
	[OP_READ] = {"read", 80},       [OP_STREAM] = {"stream", 50}, [OP_EVENT] = {"event", 40},  [OP_CAPTURE] = {"capture", 25},
	[OP_LAUNCH] = {"launch", 25},   [OP_POOL] = {"pool", 20},     [OP_VMM] = {"vmm", 20},      [OP_QUERY] = {"query", 50},
	[OP_ERROR] = {"error", 20},     [OP_REFUSED] = {"refused", 3}, [OP_GATE] = {"gate", 7},   [OP_CARD] = {"card", 1},
	[OP_HAND] = {"hand", 15},       [OP_CONTEXT] = {"context", 9}, [OP_RESET] = {"reset", 0},  [OP_FAULT] = {"fault", 0},
};

static struct random random_of(uint64_t salt, uint64_t number)
{
	struct random r = {program.seed * 0xD1B54A32D192ED03u + salt};
	r.state = draw(&r) ^ number * 0x9E3779B97F4A7C15u;
	draw(&r);
	return r;
}

static bool round_resets(uint32_t round)
{
	struct random r = random_of(2, round);
	return round != 0 && program.reset_rounds != 0 && chance(&r, program.reset_rounds);
}

bool round_captures(uint32_t index)
{
	return program.threads == 1 || index / ROUND % 3 == 0;
}

static size_t draw_bytes(struct random *r)
{
	static const size_t exact[] = {1, 4, 255, 256, 512, 513, 4096, 10000, 65536, MIB, MIB + 1, 2 * MIB, 3 * MIB};
	uint32_t class = pick(r, 100);
	uint32_t n = pick(r, (uint32_t)(sizeof exact / sizeof exact[0]));
	uint64_t fine = draw(r);
	if (class < 45)
		return exact[n];
	if (class < 80)
		return 1 + fine % 20000;
	if (class < 95)
		return 1 + fine % MIB;
	return class < 98 ? 1 + fine % (8 * MIB) : class == 98 ? 32 * MIB : 0;
}

static enum op_kind draw_kind(struct random *r)
{
	unsigned at = pick(r, 1000), kind = 0;
	for (; kind < OP_KINDS; at -= kinds[kind++].weight)
		if (at < kinds[kind].weight)
			return (enum op_kind)kind;
	return OP_ALLOC;
}

void op_decide(struct op *op, uint32_t index)
{
	struct random r = random_of(1, index);
	op->index = index;
	op->thread = (int)pick(&r, (uint32_t)program.threads);
	op->device = (int)pick(&r, (uint32_t)program.devices);
	op->kind = draw_kind(&r);
	op->block = (int)pick(&r, BLOCKS);
	op->other = (int)pick(&r, BLOCKS);
	op->stream = (int)pick(&r, STREAMS);
	op->bytes = draw_bytes(&r);
	op->cu = &drivers[pick(&r, 2)];
	op->random = r;
	if (index % ROUND == 0 && round_resets(index / ROUND))
		op->kind = OP_RESET;
	if (program.fault && index + 1 == program.ops)
		op->kind = OP_FAULT;
}

const char *op_kind_name(enum op_kind kind) { return kinds[kind].name; }

void op_describe(const struct op *op, char *text, size_t size)
{
	int n = snprintf(text, size, "%s", kinds[op->kind].name);
	if (program.threads > 1)
		n += snprintf(text + n, size - (size_t)n, " thread %d", op->thread);
	if (program.devices > 1)
		n += snprintf(text + n, size - (size_t)n, " device %d", op->device);
	snprintf(text + n, size - (size_t)n, " block %d other %d stream %d bytes %zu", op->block, op->other, op->stream, op->bytes);
}

bool op_included(uint32_t index)
{
	return program.included == NULL || program.included[index];
}
