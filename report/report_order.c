/* A heap of the journals' next events. */
#include "report/report_order.h"

#include <stdlib.h>

static int head_before(const tn_order_head *a, const tn_order_head *b)
{
    return a->ns != b->ns ? a->ns < b->ns : a->process < b->process;
}

static void sift_down(tn_order_head *heap, size_t count, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++)
            if (head_before(&heap[child], &heap[least]))
                least = child;
        if (least == i)
            return;
        tn_order_head swap = heap[i];
        heap[i] = heap[least];
        heap[least] = swap;
        i = least;
    }
}

static const tn_event process_end = {.type = TN_EV_NONE};

static int next_of(tn_report *report, tn_order_head *h)
{
    tn_process *p = &report->processes[h->process];
    const tn_journal_header *header = tn_reader_header(p->reader);
    uint64_t last = header->mono_last_ns > header->mono_start_ns ? header->mono_last_ns - header->mono_start_ns : 0, ns = last;
    if (h->at_end)
        return 0;
    if (last > p->ran_ns)
        p->ran_ns = last;
    h->event = tn_reader_next(p->reader, &h->thread);
    if (h->event) {
        /* Stamps may drift from the clock; past a process's end they would reach into the next one's time. */
        uint64_t stamp = tn_reader_ns(p->reader, h->event->tsc);
        if (stamp < last || !(header->flags & TN_HF_ENDED))
            ns = stamp;
        /* The clock pair is renewed with each chunk only: of a process that was killed the last event is later. */
        if (ns > p->ran_ns)
            p->ran_ns = ns;
    } else if (p->ended) {
        h->event = &process_end;
        h->thread = 0;
        h->at_end = 1;
    } else {
        return 0;
    }
    ns += p->start_ns;
    if (ns > h->ns) /* the reader's order holds within a process, whatever the clock does */
        h->ns = ns;
    return 1;
}

tn_error tn_order_begin(tn_order *order, tn_report *report)
{
    *order = (tn_order){.report = report, .heap = calloc(report->process_count, sizeof(tn_order_head))};
    if (!order->heap)
        return TN_E_NOMEM;
    order->first_ns = report->processes[0].start_ns;
    for (size_t i = 1; i < report->process_count; i++)
        if (report->processes[i].start_ns < order->first_ns)
            order->first_ns = report->processes[i].start_ns;
    for (size_t i = 0; i < report->process_count; i++) {
        tn_reader_rewind(report->processes[i].reader);
        order->heap[order->count] = (tn_order_head){.process = (uint32_t)i};
        order->count += (size_t)next_of(report, &order->heap[order->count]);
    }
    for (size_t i = order->count / 2; i-- > 0;)
        sift_down(order->heap, order->count, i);
    return TN_OK;
}

const tn_event *tn_order_next(tn_order *order, uint32_t *process, uint32_t *thread, uint64_t *ns)
{
    /* The head handed out last moves on only now: until then it holds its journal's place. */
    if (order->started) {
        if (!next_of(order->report, &order->heap[0]))
            order->heap[0] = order->heap[--order->count];
        sift_down(order->heap, order->count, 0);
    }
    order->started = order->count > 0;
    if (order->count == 0)
        return NULL;
    *process = order->heap[0].process;
    *thread = order->heap[0].thread;
    *ns = order->heap[0].ns - order->first_ns;
    return order->heap[0].event;
}

void tn_order_end(tn_order *order)
{
    free(order->heap);
}
