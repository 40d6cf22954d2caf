/* Frames of the journal and functions of the source, made into lines. */
#define _GNU_SOURCE
#include "report/report_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/report_fold.h"
#include "report/report_names.h"
#include "report/report_short_name.h"

void tn_stack_want(tn_report *r, uint32_t index)
{
    const tn_site *site = &r->sites[index];
    const tn_reader *reader = r->processes[site->process].reader;
    for (uint32_t i = 0; site->record && i < site->record->frame_count; i++) {
        const struct tn_frame *frame = &site->record->frames[i];
        tn_symbols_want(r->symbols, tn_reader_module(reader, frame->module), tn_reader_module_path(reader, frame->module), frame->offset);
    }
}

static void add_line(tn_stack *out, const tn_stack_line *line, int fold)
{
    tn_stack_line *last = out->count ? &out->lines[out->count - 1] : NULL;
    if (fold && last && line->layer && last->layer == line->layer)
        last->frames++;
    else if (out->count < TN_STACK_LINES)
        out->lines[out->count++] = *line;
}

void tn_stack_of(tn_report *r, uint32_t index, int fold, tn_stack *out)
{
    const tn_site *site = &r->sites[index];
    const tn_reader *reader = r->processes[site->process].reader;
    char name[1024];
    out->count = 0;
    tn_stack_want(r, index);
    for (uint32_t i = 0; site->record && i < site->record->frame_count; i++) {
        const struct tn_frame *frame = &site->record->frames[i];
        const tn_rec_module *module = tn_reader_module(reader, frame->module);
        const char *path = tn_reader_module_path(reader, frame->module);
        const tn_symbol *symbol = tn_symbols_get(r->symbols, module, path, frame->offset);
        for (uint32_t k = 0; k < (symbol->frame_count ? symbol->frame_count : 1); k++) {
            int outermost = symbol->frame_count == 0 || k + 1 == symbol->frame_count;
            tn_stack_line line = {.offset = frame->offset, .frames = 1, .jit = module && module->jit, .inlined = !outermost,
                                  .state = symbol->state, .line_state = symbol->line_state};
            if (module && !module->jit && path && path[0]) {
                line.path = path;
                line.module = tn_base_name(path);
            }
            if (symbol->frame_count) {
                line.function = symbol->frames[k].function;
                line.file = symbol->frames[k].file;
                line.line = symbol->frames[k].line;
            }
            if (outermost) { /* the symbol table's name: that of the exported function */
                line.function = symbol->function ? symbol->function : line.function;
                line.delta = symbol->delta;
            }
            if (line.function)
                line.state = TN_SYMBOL_FOUND;
            line.layer = tn_fold_layer(line.module, line.function ? tn_short_name(line.function, name, sizeof(name)) : NULL);
            add_line(out, &line, fold);
        }
    }
}

const tn_stack_line *tn_stack_where(const tn_stack *stack)
{
    for (uint32_t i = 0; i < stack->count; i++)
        if (!stack->lines[i].layer)
            return &stack->lines[i];
    return stack->count ? &stack->lines[0] : NULL;
}

/* The innermost Python caller that is the program's own, and not of an installed package; else the innermost. */
static int python_words(const tn_report *r, const tn_site *site, char *out, size_t size)
{
    const char *file = NULL, *name = NULL;
    const tn_reader *reader = r->processes[site->process].reader;
    uint32_t chosen = UINT32_MAX;
    for (uint32_t i = 0; site->python && i < site->python->frame_count && chosen == UINT32_MAX; i++)
        if (tn_reader_python(reader, site->python->frames[i].function, &file, &name) && !strstr(file, "/site-packages/") &&
            !strstr(file, "/dist-packages/") && !strstr(file, "/lib/python") && file[0] != '<')
            chosen = i;
    if (chosen == UINT32_MAX)
        chosen = 0;
    if (!site->python || site->python->frame_count == 0 || !tn_reader_python(reader, site->python->frames[chosen].function, &file, &name))
        return 0;
    snprintf(out, size, "%s (%s:%" PRIu32 ")", name, tn_base_name(file), site->python->frames[chosen].line);
    return 1;
}

char *tn_stack_words(tn_report *r, uint32_t index, char *out, size_t size)
{
    tn_stack stack;
    char name[256];
    if (r->sites[index].tier) {
        snprintf(out, size, "memory of tier %s", tn_tier_name(r->sites[index].tier));
        return out;
    }
    if (python_words(r, &r->sites[index], out, size))
        return out;
    tn_stack_of(r, index, 1, &stack);
    const tn_stack_line *where = tn_stack_where(&stack);
    if (!where)
        snprintf(out, size, "no stack");
    else if (where->function && where->file)
        snprintf(out, size, "%s (%s:%" PRIu32 ")", tn_short_name(where->function, name, sizeof(name)), tn_base_name(where->file), where->line);
    else if (where->function)
        snprintf(out, size, "%s in %s", tn_short_name(where->function, name, sizeof(name)), where->module ? where->module : "unknown module");
    else if (where->jit)
        snprintf(out, size, "code in no file");
    else
        snprintf(out, size, "%s+0x%" PRIx64, where->module ? where->module : "unknown module", where->offset);
    return out;
}
