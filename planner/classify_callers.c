/* A native site's callers in Python: one unit, or one each where they differ. */
#include <stdlib.h>
#include <string.h>

#include "planner/classify.h"

/* 1 where a native site's callers, each a unit, differ. */
static int find_apart(const tn_sections *all, uint8_t *apart, size_t site_count)
{
    int any = 0;
    memset(apart, 0, site_count);
    for (size_t k = 0; k < all->count; k++) {
        const tn_section *s = &all->at[k];
        for (size_t i = 1; i < s->unit_count; i++) {
            const tn_trace_site *a = &s->trace->sites[s->units[i - 1].site], *b = &s->trace->sites[s->units[i].site];
            if (a->native == b->native && (s->units[i - 1].discipline != s->units[i].discipline || s->units[i - 1].held != s->units[i].held))
                any = apart[a->native] = 1;
        }
    }
    return any;
}

static tn_error classify_with(const tn_trace *trace, const uint8_t *apart, const tn_classify_options *options, tn_sections *out)
{
    tn_error error = tn_sections_make(trace, apart, out);
    for (size_t i = 0; i < out->count && error == TN_OK; i++)
        error = tn_classify(&out->at[i], options);
    if (error != TN_OK)
        tn_sections_free(out);
    return error;
}

tn_error tn_classify_trace(const tn_trace *trace, const tn_classify_options *options, tn_sections *out)
{
    uint8_t *apart = calloc(trace->site_count + 1, 1);
    int python = 0;
    *out = (tn_sections){0};
    if (!apart)
        return TN_E_NOMEM;
    for (size_t i = 0; i < trace->site_count; i++)
        python |= trace->sites[i].python != 0;
    tn_error error = TN_OK;
    if (python) {
        tn_sections fine;
        memset(apart, 1, trace->site_count);
        error = classify_with(trace, apart, options, &fine);
        if (error == TN_OK) {
            find_apart(&fine, apart, trace->site_count);
            tn_sections_free(&fine);
        }
    }
    if (error == TN_OK)
        error = classify_with(trace, apart, options, out);
    free(apart);
    return error;
}
