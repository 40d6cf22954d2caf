/* Folds what an operation saw into the lane's hash, and prints it under --trace in one write per operation. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/generator/generator.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
	return hash ^ hash >> 29;
}

uint64_t draw(struct random *r)
{
	uint64_t z = r->state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static void append(struct lane *l, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t left = sizeof l->line - l->line_used;
	int n = vsnprintf(l->line + l->line_used, left, format, args);
	va_end(args);
	l->line_used += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left - 1;
}

void observe_begin(struct lane *l, const struct op *op)
{
	l->hash = mix(l->hash, op->index);
	l->observed = 0;
	if (!program.trace)
		return;
	char text[160];
	op_describe(op, text, sizeof text);
	l->line_used = 0;
	append(l, "%" PRIu32 " %s:", op->index, text);
}

void observe(struct lane *l, const char *name, int64_t value)
{
	l->hash = mix(l->hash, (uint64_t)value);
	l->observed++;
	if (program.trace)
		append(l, " %s=%" PRId64, name, value);
}

void observe_bytes(struct lane *l, const char *name, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t sum = count, word;
	size_t i = 0;
	for (; i + sizeof word <= count; i += sizeof word) {
		memcpy(&word, at + i, sizeof word);
		sum = mix(sum, word);
	}
	for (; i < count; i++)
		sum = mix(sum, at[i]);
	l->hash = mix(l->hash, sum);
	if (program.trace)
		append(l, " %s[%zu]=%016" PRIx64, name, count, sum);
}

void observe_output(struct lane *l, const char *name, const void *output)
{
	observe(l, name, output == NULL ? 0 : (uintptr_t)output == KEPT ? 1 : 2);
}

void observe_end(struct lane *l)
{
	l->acted += l->observed != 0;
	/* Each operation shows the error that the runtime keeps for this thread, whatever its calls were. */
	observe(l, "last", (int64_t)cudaPeekAtLastError());
	if (!program.trace)
		return;
	if (l->line_used > sizeof l->line - 2)
		l->line_used = sizeof l->line - 2;
	l->line[l->line_used++] = '\n';
	if (write(STDOUT_FILENO, l->line, l->line_used) < 0)
		_exit(3);
}
