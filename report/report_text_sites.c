/* Sites with their stacks. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_text_parts.h"

enum { SHORT_STACK = 6 };

/* Why frames have no name: each reason gets a letter where it is met first, and one line at the end. */
typedef struct reasons {
    size_t frames[TN_SYMBOL_STATE_COUNT];
    tn_symbol_state in_order[TN_SYMBOL_STATE_COUNT];
    unsigned count;
} reasons;

static char letter_for(reasons *known, tn_symbol_state state)
{
    unsigned i = 0;
    while (i < known->count && known->in_order[i] != state)
        i++;
    if (i == known->count)
        known->in_order[known->count++] = state;
    known->frames[state]++;
    return (char)('a' + i);
}

/* One frame: module+offset and its name, or the letter of the reason why it has none. */
static void print_frame(tn_report *r, const tn_site *site, uint32_t i, int full, reasons *known, FILE *out)
{
    const struct tn_frame *frame = &site->record->frames[i];
    tn_reader *reader = r->processes[site->process].reader;
    const tn_rec_module *module = tn_reader_module(reader, frame->module);
    const char *path = tn_reader_module_path(reader, frame->module);
    tn_symbol symbol;
    tn_symbol_state state = TN_SYMBOL_NO_FILE;
    char at[24] = "";
    const char *base = "[unknown module]";
    if (module && module->jit)
        base = "[code in no file]";
    else if (module && path && path[0])
        base = tn_base_name(path);
    if (module) {
        state = tn_symbols_find(r->symbols, module, path, frame->offset, &symbol);
        if (!module->jit)
            snprintf(at, sizeof(at), "+0x%" PRIx64, frame->offset);
    }
    fputs("       ", out);
    tn_text_clean(out, base, 48);
    fputs(at, out);
    size_t column = 7 + (strlen(base) > 48 ? 48 : strlen(base)) + strlen(at);
    if (state == TN_SYMBOL_FOUND) {
        char suffix[24];
        snprintf(suffix, sizeof(suffix), "+0x%" PRIx64, symbol.delta);
        fputs("  ", out);
        tn_text_clean(out, symbol.name, full ? SIZE_MAX : TN_TEXT_COLUMNS - column - 2 - strlen(suffix));
        fputs(suffix, out);
    } else {
        fprintf(out, "  (%c)", letter_for(known, state));
    }
    fputc('\n', out);
}

static void print_row(tn_report *r, const tn_row *row, size_t number, int full, reasons *known, FILE *out)
{
    char where[TN_FIGURE], a[TN_FIGURE], b[TN_FIGURE], c[TN_FIGURE], d[TN_FIGURE];
    const tn_site *site = &r->sites[row->site];
    const tn_stat *s = &row->stat;
    tn_text_place(&r->places[row->place], row->place == TN_PLACE_HOST, where);
    fprintf(out, "%4zu. %016" PRIx64 "  %s, %s, ", number, site->key, where, tn_kind_name(row->kind));
    for (unsigned i = 0; i < row->api_count; i++)
        fprintf(out, "%s%s", i ? " " : "", r->apis[row->apis[i]].name);
    fprintf(out, "\n      peak %s (backed %s), live %s (backed %s); %" PRIu64 " alloc%s, %" PRIu64 " free%s", tn_format_bytes(s->peak_requested, a),
            tn_format_bytes(s->peak_backed, b), tn_format_bytes(s->live_requested, c), tn_format_bytes(s->live_backed, d),
            s->allocs, TN_PLURAL(s->allocs), s->frees, TN_PLURAL(s->frees));
    if (s->refused)
        fprintf(out, ", %" PRIu64 " refused", s->refused);
    fputc('\n', out);
    if (!site->record) {
        fputs(site->key == TN_SITE_NO_STACK ? "       no stack: called from a signal handler inside a hook\n"
                                            : "       no stack was recorded\n", out);
        return;
    }
    uint32_t count = site->record->frame_count, shown = full || count <= SHORT_STACK ? count : SHORT_STACK - 1;
    for (uint32_t i = 0; i < shown; i++)
        print_frame(r, site, i, full, known, out);
    if (shown < count)
        fprintf(out, "       ... %" PRIu32 " more\n", count - shown);
    else if (site->record->flags & TN_SF_CUT)
        fputs("       ... deeper frames were not recorded\n", out);
    if (site->record->flags & TN_SF_CALLER_ONLY)
        fputs("       only the caller is known\n", out);
}

void tn_text_sites(tn_report *r, const tn_report_options *options, FILE *out)
{
    size_t shown = options->top < r->row_count ? options->top : r->row_count;
    reasons known = {0};
    if (shown == r->row_count)
        fprintf(out, "Sites (%zu, by peak backed bytes)\n", shown);
    else
        fprintf(out, "Sites (%zu of %zu, by peak backed bytes)\n", shown, r->row_count);
    for (size_t i = 0; i < shown; i++)
        print_row(r, &r->rows[r->row_order[i]], i + 1, options->full, &known, out);
    for (unsigned i = 0; i < known.count; i++) {
        size_t frames = known.frames[known.in_order[i]];
        fprintf(out, "  (%c) %zu frame%s without a name: %s.\n", 'a' + i, frames, TN_PLURAL(frames), tn_symbol_state_text(known.in_order[i]));
    }
    fputc('\n', out);
}
