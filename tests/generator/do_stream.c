/* Streams and events: made, waited for, asked, ended with work on them. */
#include "tests/generator/generator.h"

static void create(struct lane *l, struct op *op, int place)
{
	uint32_t way = pick(&op->random, 3);
	unsigned flags = pick(&op->random, 2) ? cudaStreamNonBlocking : cudaStreamDefault;
	cudaStream_t s = NULL;
	int code;
	if (way == 0) {
		flags = cudaStreamDefault;
		code = (int)cudaStreamCreate(&s);
	} else if (way == 1) {
		code = (int)cudaStreamCreateWithFlags(&s, flags);
	} else {
		code = (int)cudaStreamCreateWithPriority(&s, flags, -(int)pick(&op->random, 4));
	}
	observe(l, "create", code);
	if (code != 0)
		return;
	l->at->streams[place] = s;
	l->at->stream_made[place] = true;
	l->at->blocking[place] = flags == cudaStreamDefault;
	unsigned seen = 77;
	int priority = 77;
	observe(l, "flags", (int)cudaStreamGetFlags(s, &seen));
	observe(l, "value", seen);
	observe(l, "priority", (int)cudaStreamGetPriority(s, &priority));
	observe(l, "value", priority);
}

/* Half of the streams end with work under way, which the legacy stream then waits for in their place. */
static void destroy(struct lane *l, struct op *op, int place)
{
	struct place *p = l->at;
	if (chance(&op->random, 2)) {
		observe(l, "wait", (int)cudaStreamSynchronize(p->streams[place]));
		stream_idle(l, place);
	} else {
		observe(l, "record", (int)cudaEventRecord(p->join, p->streams[place]));
		observe(l, "behind", (int)cudaStreamWaitEvent(p->streams[0], p->join, 0));
		for (int i = 0; i < BLOCKS; i++)
			if (p->blocks[i].busy == place)
				p->blocks[i].busy = 0;
	}
	observe(l, "destroy", (int)cudaStreamDestroy(p->streams[place]));
	p->stream_made[place] = false;
	p->streams[place] = NULL;
}

/* The answer of a query while work may be under way. Not ready becomes the runtime's last error as any failure does. */
static void observe_now(struct lane *l, int code)
{
	observe(l, "query", code == 0 || code == cudaErrorNotReady);
	if (code == cudaErrorNotReady)
		cudaGetLastError();
}

static void CUDART_CB host_function(void *arg)
{
	__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELEASE);
}

void do_stream(struct lane *l, struct op *op)
{
	uint32_t what = pick(&op->random, 12);
	int place = op->stream, code, called = 0;
	cudaStream_t s = stream_of(l, place);
	if (place >= CREATED && (what < 3 || !l->at->stream_made[place])) {
		if (l->at->stream_made[place])
			destroy(l, op, place);
		else
			create(l, op, place);
		return;
	}
	switch (what) {
	case 4:
	case 5:
		code = what == 4 ? (int)cudaStreamSynchronize(s) : (int)op->cu->p_cuStreamSynchronize((CUstream)s);
		observe(l, "wait", code);
		stream_idle(l, place < CREATED || l->at->stream_made[place] ? place : 0);
		if (place != 0 && s != NULL)
			observe(l, "query", (int)cudaStreamQuery(s));
		break;
	case 6: /* whether work is under way depends on time */
		observe(l, "get", (int)cudaGetLastError());
		observe_now(l, (int)cudaStreamQuery(s));
		break;
	case 7:
		if (program.threads > 1 && round_captures(op->index)) {
			streams_wait(l);
			break;
		}
		code = pick(&op->random, 2) ? (int)cudaDeviceSynchronize() : (int)op->cu->p_cuCtxSynchronize();
		observe(l, "device", code);
		blocks_idle(l);
		for (int i = 1; i < STREAMS; i++)
			if (l->at->stream_made[i])
				observe(l, "idle", (int)op->cu->p_cuStreamQuery((CUstream)l->at->streams[i]));
		break;
	case 8:
		observe(l, "function", (int)cudaLaunchHostFunc(s, host_function, &called));
		observe(l, "wait", (int)cudaStreamSynchronize(s));
		observe(l, "called", __atomic_load_n(&called, __ATOMIC_ACQUIRE));
		break;
	case 9: /* between two streams */
		if (op->other >= STREAMS)
			break;
		observe(l, "record", (int)cudaEventRecord(l->at->join, s));
		observe(l, "behind", (int)cudaStreamWaitEvent(stream_of(l, op->other), l->at->join, 0));
		break;
	default: {
		enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
		if (place == 0)
			break; /* other threads' captures make it an error */
		observe(l, "capturing", (int)cudaStreamIsCapturing(s, &status));
		observe(l, "status", status);
	}
	}
}

void do_event(struct lane *l, struct op *op)
{
	int place = (int)pick(&op->random, EVENTS), other = (int)pick(&op->random, EVENTS), code;
	cudaEvent_t *e = &l->at->events[place];
	uint32_t what = pick(&op->random, 8);
	if (*e == NULL) {
		static const unsigned flags[] = {cudaEventDefault, cudaEventDisableTiming, cudaEventBlockingSync, cudaEventDisableTiming | cudaEventBlockingSync};
		code = what == 0 ? (int)cudaEventCreate(e) : (int)cudaEventCreateWithFlags(e, flags[pick(&op->random, 4)]);
		observe(l, "create", code);
		l->at->event_stream[place] = -1;
		return;
	}
	switch (what) {
	case 0:
		observe(l, "destroy", (int)cudaEventDestroy(*e));
		*e = NULL;
		break;
	case 1:
	case 2:
	case 3:
		observe(l, "record", (int)cudaEventRecord(*e, stream_of(l, op->stream)));
		l->at->event_stream[place] = op->stream;
		break;
	case 4:
		observe(l, "wait", (int)cudaEventSynchronize(*e));
		observe(l, "query", (int)cudaEventQuery(*e));
		break;
	case 5:
		observe(l, "get", (int)cudaGetLastError());
		observe_now(l, pick(&op->random, 2) ? (int)cudaEventQuery(*e) : (int)op->cu->p_cuEventQuery((CUevent)*e));
		break;
	case 6: observe(l, "behind", (int)cudaStreamWaitEvent(stream_of(l, op->stream), *e, 0)); break;
	default: {
		float ms = -1;
		cudaEvent_t end = l->at->events[other];
		if (end == NULL)
			break;
		if (l->at->event_stream[place] >= 0)
			observe(l, "wait", (int)cudaEventSynchronize(*e));
		if (l->at->event_stream[other] >= 0)
			observe(l, "wait", (int)cudaEventSynchronize(end));
		code = (int)cudaEventElapsedTime(&ms, *e, end);
		observe(l, "elapsed", code);
		observe(l, "same", code == 0 && place == other ? ms == 0 : 0);
	}
	}
}
