/* The report's symbols, in the shape of a plan's frames. */
#include "cli/plan_names.h"

#include <stdlib.h>

#include "planner/plan_parts.h"
#include "report/report_names.h"

struct plan_names {
    const tn_trace *trace;
    tn_symbols *symbols;
    size_t cut_short;
};

plan_names *plan_names_new(const tn_trace *trace, const tn_symbol_options *options)
{
    plan_names *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->trace = trace;
    n->symbols = tn_symbols_new(options);
    if (!n->symbols) {
        free(n);
        return NULL;
    }
    for (size_t i = 0; i < trace->site_count; i++) {
        const tn_trace_site *x = &trace->sites[i];
        const tn_reader *reader = trace->processes[x->process].reader;
        for (uint32_t k = 0; x->record && k < x->record->frame_count; k++)
            tn_symbols_want(n->symbols, tn_reader_module(reader, x->record->frames[k].module),
                            tn_reader_module_path(reader, x->record->frames[k].module), x->record->frames[k].offset);
    }
    return n;
}

void plan_names_free(plan_names *n)
{
    if (n)
        tn_symbols_free(n->symbols);
    free(n);
}

size_t plan_names_cut_short(const plan_names *n)
{
    return n->cut_short;
}

void plan_names_fill(plan_names *n, tn_plan *plan, uint32_t site, tn_plan_row *row)
{
    const tn_trace_site *x = &n->trace->sites[site];
    for (uint32_t i = 0; x->record && i < x->record->frame_count; i++) {
        const struct tn_frame *frame = &x->record->frames[i];
        const tn_reader *reader = n->trace->processes[x->process].reader;
        const tn_rec_module *module = tn_reader_module(reader, frame->module);
        const char *path = tn_reader_module_path(reader, frame->module);
        const tn_symbol *symbol = tn_symbols_get(n->symbols, module, path, frame->offset);
        n->cut_short += symbol->state == TN_SYMBOL_TIME || symbol->line_state == TN_SYMBOL_TIME;
        for (uint32_t k = 0; k < (symbol->frame_count ? symbol->frame_count : 1); k++) {
            int outermost = symbol->frame_count == 0 || k + 1 == symbol->frame_count;
            tn_plan_frame *f = tn_plan_add_frame(plan, row);
            if (!f)
                return;
            f->inlined = !outermost;
            if (symbol->frame_count) {
                f->function = tn_plan_text(plan, symbol->frames[k].function);
                f->file = tn_plan_text(plan, symbol->frames[k].file);
                f->line = symbol->frames[k].line;
            }
            if (!outermost)
                continue;
            if (symbol->function)
                f->function = tn_plan_text(plan, symbol->function);
            f->delta = symbol->delta;
            f->module = path && path[0] && !(module && module->jit) ? tn_plan_text(plan, tn_base_name(path)) : NULL;
            f->build_id = tn_plan_build_id(plan, module);
            f->offset = frame->offset;
        }
    }
}
