/* Sums of steps, by row, by owner and by site. */
#include <stdlib.h>
#include <string.h>

#include "report/report_owner.h"
#include "report/report_steps.h"

tn_error tn_step_sum_begin(tn_step_sum *sum, const tn_report *report)
{
    *sum = (tn_step_sum){.row_count = report->row_count};
    sum->rows = calloc(sum->row_count + 1, sizeof(*sum->rows));
    sum->touched = calloc(sum->row_count + 1, sizeof(*sum->touched));
    if (sum->rows && sum->touched)
        return TN_OK;
    tn_step_sum_free(sum);
    return TN_E_NOMEM;
}

void tn_step_sum_add(tn_step_sum *sum, const tn_step *step)
{
    for (size_t i = 0; i < step->change_count; i++) {
        const tn_step_change *c = &step->changes[i];
        tn_step_change *r = &sum->rows[c->row];
        if (r->came + r->went == 0)
            sum->touched[sum->touched_count++] = c->row;
        r->row = c->row;
        r->backed += c->backed;
        r->blocks += c->blocks;
        r->came += c->came;
        r->went += c->went;
    }
}

void tn_step_sum_clear(tn_step_sum *sum)
{
    for (size_t i = 0; i < sum->touched_count; i++)
        sum->rows[sum->touched[i]] = (tn_step_change){0};
    sum->touched_count = 0;
}

void tn_step_sum_free(tn_step_sum *sum)
{
    free(sum->rows);
    free(sum->touched);
    *sum = (tn_step_sum){0};
}

const tn_step_place *tn_step_place_of(const tn_step *step, uint32_t place)
{
    return step && place < step->place_count ? &step->places[place] : NULL;
}

static int by_key(const void *a, const void *b)
{
    const tn_step_line *x = a, *y = b;
    int names = strcmp(x->owner, y->owner);
    return names ? names : (x->site > y->site) - (x->site < y->site);
}

static int by_gain(const void *a, const void *b)
{
    const tn_step_line *x = a, *y = b;
    if (x->backed != y->backed)
        return x->backed > y->backed ? -1 : 1;
    return by_key(a, b);
}

tn_error tn_step_lines(const tn_report *report, const tn_step_sum *sum, int by_owner, int all, tn_step_line **out, size_t *count)
{
    tn_step_line *lines = calloc(sum->touched_count + 1, sizeof(*lines));
    size_t n = 0, kept = 0;
    *out = lines;
    *count = 0;
    if (!lines)
        return TN_E_NOMEM;
    for (size_t i = 0; i < sum->touched_count; i++) {
        const tn_step_change *c = &sum->rows[sum->touched[i]];
        const tn_row *row = &report->rows[c->row];
        if (!all && (tn_kind_is_host(row->kind) || !tn_kind_is_summed(row->kind)))
            continue;
        lines[n++] = (tn_step_line){.site = by_owner ? TN_NO_INDEX : row->site, .owner = tn_owner_of_site(report, row->site).name,
                                    .backed = c->backed, .blocks = c->blocks, .came = c->came};
    }
    if (n)
        qsort(lines, n, sizeof(*lines), by_key);
    for (size_t i = 0; i < n; i++) {
        if (kept && by_key(&lines[kept - 1], &lines[i]) == 0) {
            lines[kept - 1].backed += lines[i].backed;
            lines[kept - 1].blocks += lines[i].blocks;
            lines[kept - 1].came += lines[i].came;
        } else {
            lines[kept++] = lines[i];
        }
    }
    n = kept;
    kept = 0;
    for (size_t i = 0; i < n; i++)
        if (lines[i].backed || lines[i].blocks || lines[i].came)
            lines[kept++] = lines[i];
    if (kept)
        qsort(lines, kept, sizeof(*lines), by_gain);
    *count = kept;
    return TN_OK;
}
