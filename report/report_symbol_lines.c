/* Functions, inlined ones included, with file and line, from DWARF. Units are found by their address ranges, and a unit's
 * tree is walked once for all addresses in it. */
#define _GNU_SOURCE
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report_symbol_job.h"

enum { DEPTH_MAX = 200 };

typedef struct unit_range {
    uint64_t low, high;
    Dwarf_Off unit; /* of its DIE */
} unit_range;

typedef struct wanted {
    uint64_t pc; /* of the call, the return address less one */
    size_t index; /* in the job */
    Dwarf_Off unit;
    uint32_t depth;
    Dwarf_Off scopes[TN_SYMBOL_INLINED_MAX]; /* the function, then what is inlined, outermost first */
} wanted;

typedef struct lines {
    const tn_symbol_job *job;
    Dwarf *dwarf;
    unit_range *ranges;
    size_t range_count, range_capacity;
    wanted *wanted;
    size_t wanted_count;
    int failed; /* no memory */
} lines;

/* ---- units by address ---- */

static void add_ranges(lines *l, Dwarf_Die *unit)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(unit, at, &base, &low, &high)) > 0) {
        if (low >= high)
            continue;
        if (l->range_count == l->range_capacity) {
            size_t capacity = l->range_capacity ? l->range_capacity * 2 : 256;
            unit_range *grown = realloc(l->ranges, capacity * sizeof(*grown));
            if (!grown) {
                l->failed = 1;
                return;
            }
            l->ranges = grown;
            l->range_capacity = capacity;
        }
        l->ranges[l->range_count++] = (unit_range){.low = low, .high = high, .unit = dwarf_dieoffset(unit)};
    }
}

static int by_low(const void *a, const void *b)
{
    const unit_range *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static void index_units(lines *l)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die, split;
    uint8_t type;
    while (!l->failed && dwarf_get_units(l->dwarf, unit, &unit, NULL, &type, &die, &split) == 0)
        if (type == DW_UT_compile || type == DW_UT_skeleton)
            add_ranges(l, &die);
    if (l->range_count)
        qsort(l->ranges, l->range_count, sizeof(unit_range), by_low);
}

static const unit_range *unit_of(const lines *l, uint64_t pc)
{
    size_t low = 0, high = l->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->ranges[middle].low <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    /* Ranges hardly overlap; where they do, the innermost is a few places back at most. */
    for (size_t i = low, tries = 0; i-- > 0 && tries < 16; tries++)
        if (pc < l->ranges[i].high)
            return &l->ranges[i];
    return NULL;
}

/* ---- scopes of the addresses of one unit ---- */

/* Whether an address of those can be inside: 0 no, 1 yes, by its ranges; 2 it has none, look at its children. */
static int covers(Dwarf_Die *die, wanted *const *of, size_t count, wanted **inside, size_t *inside_count)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    int any = 0;
    *inside_count = 0;
    while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
        any = 1;
        for (size_t i = 0; i < count && *inside_count < count; i++)
            if (of[i]->pc >= low && of[i]->pc < high)
                inside[(*inside_count)++] = of[i];
    }
    return any ? *inside_count > 0 : 2;
}

static void walk(lines *l, Dwarf_Die *parent, wanted **of, size_t count, int depth);

static void enter(lines *l, Dwarf_Die *die, wanted **of, size_t count, int depth)
{
    int tag = dwarf_tag(die), is_function = tag == DW_TAG_subprogram, is_inlined = tag == DW_TAG_inlined_subroutine;
    wanted **inside = malloc(count * sizeof(*inside));
    size_t inside_count = 0;
    if (!inside) {
        l->failed = 1;
        return;
    }
    int covered = covers(die, of, count, inside, &inside_count);
    if (covered == 1) {
        for (size_t i = 0; i < inside_count && (is_function || is_inlined); i++) {
            wanted *w = inside[i];
            if (is_function)
                w->depth = 0;
            if (w->depth < TN_SYMBOL_INLINED_MAX)
                w->scopes[w->depth++] = dwarf_dieoffset(die);
        }
        walk(l, die, inside, inside_count, depth);
    } else if (covered == 2 && !is_inlined) { /* a declaration, or a block without code of its own */
        walk(l, die, of, count, depth);
    }
    free(inside);
}

static void walk(lines *l, Dwarf_Die *parent, wanted **of, size_t count, int depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || l->failed || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
        case DW_TAG_inlined_subroutine:
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            enter(l, &die, of, count, depth + 1);
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
            walk(l, &die, of, count, depth + 1);
            break;
        default:
            break;
        }
    } while (!l->failed && dwarf_siblingof(&die, &die) == 0);
}

/* ---- frames ---- */

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) || dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        return dwarf_formstring(&attribute);
    return NULL;
}

static uint64_t number(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

static const char *called_file(Dwarf_Die *unit, Dwarf_Die *inlined)
{
    Dwarf_Files *files;
    size_t count;
    uint64_t index = number(inlined, DW_AT_call_file);
    return dwarf_getsrcfiles(unit, &files, &count) == 0 && index < count ? dwarf_filesrc(files, index, NULL, NULL) : NULL;
}

static void tell(lines *l, Dwarf_Die *unit, const wanted *w)
{
    tn_symbol_frame frames[TN_SYMBOL_INLINED_MAX];
    char *owned[TN_SYMBOL_INLINED_MAX];
    uint32_t count = w->depth ? w->depth : 1;
    int line = 0;
    memset(frames, 0, sizeof(frames));
    memset(owned, 0, sizeof(owned));
    Dwarf_Line *at = dwarf_getsrc_die(unit, w->pc);
    if (at && dwarf_lineno(at, &line) == 0 && line > 0) {
        frames[0].line = (uint32_t)line;
        frames[0].file = dwarf_linesrc(at, NULL, NULL);
    }
    for (uint32_t i = 0; i < w->depth; i++) {
        Dwarf_Die die;
        if (!dwarf_offdie(l->dwarf, w->scopes[w->depth - 1 - i], &die))
            continue;
        const char *linked = linkage_name(&die), *plain = dwarf_diename(&die);
        owned[i] = linked ? tn_demangle(linked) : NULL;
        frames[i].function = owned[i] ? owned[i] : plain ? plain : linked;
        if (i + 1 < w->depth) { /* where it is called, in the function around it */
            frames[i + 1].file = called_file(unit, &die);
            frames[i + 1].line = (uint32_t)number(&die, DW_AT_call_line);
        }
        /* A function that no symbol table has: it was stripped of those and not of this. */
        if (i + 1 == w->depth && (linked || plain)) {
            Dwarf_Addr low = 0;
            uint64_t offset = l->job->offsets[w->index];
            tn_tell_name(l->job, w->index, linked ? linked : plain, "debug",
                         dwarf_lowpc(&die, &low) == 0 && low <= offset ? offset - low : 0);
        }
    }
    if (frames[0].line || w->depth)
        tn_tell_frames(l->job, w->index, frames, count);
    for (uint32_t i = 0; i < count; i++)
        free(owned[i]);
}

static int by_unit(const void *a, const void *b)
{
    const wanted *x = a, *y = b;
    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static void look_up(lines *l)
{
    wanted **of = malloc((l->job->count + 1) * sizeof(*of));
    l->wanted = calloc(l->job->count + 1, sizeof(wanted));
    index_units(l);
    if (!of || !l->wanted)
        l->failed = 1;
    for (size_t i = 0; i < l->job->count && !l->failed; i++) {
        uint64_t pc = l->job->offsets[i] ? l->job->offsets[i] - 1 : 0;
        const unit_range *range = unit_of(l, pc);
        if (range)
            l->wanted[l->wanted_count++] = (wanted){.pc = pc, .index = i, .unit = range->unit};
    }
    if (l->wanted_count)
        qsort(l->wanted, l->wanted_count, sizeof(wanted), by_unit);
    for (size_t i = 0, count; i < l->wanted_count && !l->failed; i += count) {
        Dwarf_Die unit;
        for (count = 0; i + count < l->wanted_count && l->wanted[i + count].unit == l->wanted[i].unit; count++)
            of[count] = &l->wanted[i + count];
        if (!dwarf_offdie(l->dwarf, l->wanted[i].unit, &unit))
            continue;
        walk(l, &unit, of, count, 0);
        for (size_t k = 0; k < count && !l->failed; k++)
            tell(l, &unit, of[k]);
    }
    free(of);
}

static uint64_t debug_size(Elf *elf)
{
    size_t names;
    uint64_t sum = 0;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return 0;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        GElf_Chdr compressed;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name || header.sh_type == SHT_NOBITS || strncmp(name, ".debug_", 7) != 0)
            continue;
        uint64_t size = header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &compressed) ? compressed.ch_size : header.sh_size;
        sum = sum + size < sum ? UINT64_MAX : sum + size;
    }
    return sum;
}

void tn_symbol_lines(const tn_symbol_job *job)
{
    static const char info[] = ".debug_info";
    tn_symbol_state why = TN_SYMBOL_NO_DEBUG;
    int fd, debug_fd = -1;
    Elf *elf = tn_symbol_open(job, &fd, &why), *debug = NULL;
    if (elf)
        why = TN_SYMBOL_NO_DEBUG;
    if (!elf || !tn_symbol_has_section(elf, 0, info))
        debug = tn_symbol_open_debug(job, &debug_fd);
    Elf *from = debug ? debug : elf;
    if (from && tn_symbol_has_section(from, 0, info)) {
        lines l = {.job = job};
        why = TN_SYMBOL_DEBUG_LARGE;
        if (debug_size(from) <= job->options->debug_bytes) {
            why = TN_SYMBOL_DEBUG_BAD;
            l.dwarf = dwarf_begin_elf(from, DWARF_C_READ, NULL);
        }
        if (l.dwarf) {
            look_up(&l);
            why = l.failed ? TN_SYMBOL_FAILED : l.range_count == 0 ? TN_SYMBOL_DEBUG_BAD : TN_SYMBOL_NOT_COVERED;
            dwarf_end(l.dwarf);
        }
        free(l.ranges);
        free(l.wanted);
    }
    tn_tell_line_state(job, why);
    elf_end(elf);
    elf_end(debug);
    close(fd);
    close(debug_fd);
}
