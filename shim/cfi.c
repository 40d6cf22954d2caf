/* Call frame information of one address, by the binary search table of .eh_frame_hdr. See cfi.h. Everything that compilers do not write for
 * ordinary code (64-bit lengths, unsorted tables, expressions, augmentations unknown here) ends in TN_CFI_OTHER: the answer "unknown" is always
 * right, only slower. */
#define _GNU_SOURCE
#include "shim/cfi.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "shim/modules.h"

/* DWARF's numbers of the registers. */
#if defined(__x86_64__)
enum { REG_FP = 6, REG_SP = 7, REG_RA = 16 };
#elif defined(__aarch64__)
enum { REG_FP = 29, REG_SP = 31, REG_RA = 30 };
#endif

/* Pointer encodings, and the only form of search table that linkers write: offsets of 4 bytes from the header. */
enum { PE_OMIT = 0xff, PE_PCREL = 0x10, PE_DATAREL_SDATA4 = 0x3b, PE_UDATA4 = 0x03 };

/* A span of bytes that is read from front to back. A read beyond its end gives 0 and sets `bad`. */
typedef struct reader {
    const uint8_t *at, *end;
    int bad;
} reader;

static uint64_t take(reader *r, uint32_t bytes)
{
    uint64_t v = 0;
    if ((uint64_t)(r->end - r->at) < bytes) {
        r->bad = 1;
        r->at = r->end;
        return 0;
    }
    memcpy(&v, r->at, bytes);
    r->at += bytes;
    return v;
}

static void skip(reader *r, uint64_t bytes)
{
    if ((uint64_t)(r->end - r->at) < bytes) {
        r->bad = 1;
        bytes = (uint64_t)(r->end - r->at);
    }
    r->at += bytes;
}

static uint64_t take_uleb(reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = (uint8_t)take(r, 1);
        if (shift > 56)
            r->bad = 1;
        else
            v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80) || r->bad)
            return v;
    }
}

static int64_t take_sleb(reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = (uint8_t)take(r, 1);
        if (shift > 56)
            r->bad = 1;
        else
            v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80) || r->bad)
            return b & 0x40 && shift <= 56 ? (int64_t)(v | ~(uint64_t)0 << (shift + 7)) : (int64_t)v;
    }
}

/* A pointer as FDEs hold them: absolute or relative to its own place. */
static uint64_t take_pointer(reader *r, uint8_t encoding)
{
    uint64_t place = (uint64_t)r->at, v;
    switch (encoding & 0x0f) {
    case 0x00: /* absptr */
    case 0x04: /* udata8 */
    case 0x0c: v = take(r, 8); break;
    case 0x02: v = take(r, 2); break;
    case 0x03: v = take(r, 4); break;
    case 0x0a: v = (uint64_t)(int64_t)(int16_t)take(r, 2); break;
    case 0x0b: v = (uint64_t)(int64_t)(int32_t)take(r, 4); break;
    default: r->bad = 1; return 0;
    }
    switch (encoding & 0xf0) {
    case 0x00: return v;
    case PE_PCREL: return place + v;
    default: r->bad = 1; return 0; /* relative to something else, or indirect */
    }
}

/* ---- rows */

typedef enum place { UNSPECIFIED = 0, SAME, UNDEFINED, SAVED, ELSEWHERE } place;

typedef struct location {
    place kind;
    int64_t offset; /* from the CFA, SAVED only */
} location;

typedef struct row {
    uint64_t cfa_register;
    int64_t cfa_offset;
    int cfa_is_expression;
    location fp, ra;
} row;

typedef struct cie {
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointer_encoding, has_data;
    reader program;
} cie;

#define REMEMBERED_MAX 8

static location *location_of(row *w, uint64_t reg)
{
    return reg == REG_FP ? &w->fp : reg == REG_RA ? &w->ra : NULL;
}

static void set(row *w, uint64_t reg, place kind, int64_t offset)
{
    location *l = location_of(w, reg);
    if (l)
        *l = (location){ kind, offset };
}

static void restore(row *w, const row *initial, uint64_t reg)
{
    set(w, reg, UNSPECIFIED, 0);
    if (initial && reg == REG_FP)
        w->fp = initial->fp;
    if (initial && reg == REG_RA)
        w->ra = initial->ra;
}

/* The opcodes that stand in the low six bits, other than advances. 0: not understood. */
static int run_extended(reader *r, const cie *c, uint8_t op, row *w, const row *initial, row *remembered, int *depth)
{
    uint64_t reg;
    switch (op) {
    case 0x00: return 1;                                                              /* nop */
    case 0x05: reg = take_uleb(r); set(w, reg, SAVED, (int64_t)take_uleb(r) * c->data_align); return 1; /* offset_extended */
    case 0x06: restore(w, initial, take_uleb(r)); return 1;                           /* restore_extended */
    case 0x07: set(w, take_uleb(r), UNDEFINED, 0); return 1;                          /* undefined */
    case 0x08: set(w, take_uleb(r), SAME, 0); return 1;                               /* same_value */
    case 0x09: reg = take_uleb(r); (void)take_uleb(r); set(w, reg, ELSEWHERE, 0); return 1; /* register */
    case 0x0a:                                                                        /* remember_state */
        if (*depth == REMEMBERED_MAX)
            return 0;
        remembered[(*depth)++] = *w;
        return 1;
    case 0x0b: /* restore_state */
        if (*depth == 0)
            return 0;
        *w = remembered[--*depth];
        return 1;
    case 0x0c: /* def_cfa */
    case 0x12: /* def_cfa_sf */
        w->cfa_register = take_uleb(r);
        w->cfa_offset = op == 0x0c ? (int64_t)take_uleb(r) : take_sleb(r) * c->data_align;
        w->cfa_is_expression = 0;
        return 1;
    case 0x0d: w->cfa_register = take_uleb(r); return !w->cfa_is_expression;          /* def_cfa_register */
    case 0x0e: w->cfa_offset = (int64_t)take_uleb(r); return !w->cfa_is_expression;   /* def_cfa_offset */
    case 0x13: w->cfa_offset = take_sleb(r) * c->data_align; return !w->cfa_is_expression; /* def_cfa_offset_sf */
    case 0x0f: skip(r, take_uleb(r)); w->cfa_is_expression = 1; return 1;             /* def_cfa_expression */
    case 0x10: /* expression */
    case 0x16: reg = take_uleb(r); skip(r, take_uleb(r)); set(w, reg, ELSEWHERE, 0); return 1; /* val_expression */
    case 0x11: reg = take_uleb(r); set(w, reg, SAVED, take_sleb(r) * c->data_align); return 1; /* offset_extended_sf */
    case 0x14: reg = take_uleb(r); (void)take_uleb(r); set(w, reg, ELSEWHERE, 0); return 1;    /* val_offset */
    case 0x15: reg = take_uleb(r); (void)take_sleb(r); set(w, reg, ELSEWHERE, 0); return 1;    /* val_offset_sf */
    case 0x2e: (void)take_uleb(r); return 1; /* GNU_args_size: matters to those who land in the frame */
    case 0x2f: reg = take_uleb(r); set(w, reg, SAVED, -(int64_t)take_uleb(r) * c->data_align); return 1; /* GNU_negative_offset_extended */
    default: return 0; /* set_loc, negate_ra_state, what else there may be */
    }
}

/* Runs a program up to the row that holds at `target`. 0: not understood. */
static int run(reader r, const cie *c, uint64_t start, uint64_t target, row *w, const row *initial)
{
    row remembered[REMEMBERED_MAX];
    int depth = 0;
    uint64_t loc = start;
    while (r.at < r.end && !r.bad) {
        uint8_t op = (uint8_t)take(&r, 1), low = op & 0x3f;
        uint64_t advance = 0;
        switch (op & 0xc0) {
        case 0x40: advance = low; break;
        case 0x80: set(w, low, SAVED, (int64_t)take_uleb(&r) * c->data_align); continue;
        case 0xc0: restore(w, initial, low); continue;
        default:
            if (op == 0x02)
                advance = take(&r, 1);
            else if (op == 0x03)
                advance = take(&r, 2);
            else if (op == 0x04)
                advance = take(&r, 4);
            else if (!run_extended(&r, c, op, w, initial, remembered, &depth))
                return 0;
            else
                continue;
        }
        loc += advance * c->code_align;
        if (loc > target)
            break;
    }
    return !r.bad;
}

/* ---- entries */

/* The entry (CIE or FDE) at p, without its length; 0 where it does not end before `end`. */
static int open_entry(const uint8_t *p, const uint8_t *end, reader *r)
{
    *r = (reader){ p, end, 0 };
    uint64_t length = take(r, 4);
    if (r->bad || length == 0 || length == 0xffffffffu || length > (uint64_t)(end - r->at))
        return 0;
    r->end = r->at + length;
    return 1;
}

static int read_cie(const uint8_t *p, const uint8_t *end, cie *c)
{
    reader r;
    memset(c, 0, sizeof *c);
    if (!open_entry(p, end, &r) || take(&r, 4) != 0)
        return 0;
    uint64_t version = take(&r, 1);
    const uint8_t *augmentation = r.at;
    while (take(&r, 1) && !r.bad)
        ;
    c->code_align = take_uleb(&r);
    c->data_align = take_sleb(&r);
    uint64_t ra = version == 1 ? take(&r, 1) : take_uleb(&r);
    if (r.bad || (version != 1 && version != 3) || ra != REG_RA)
        return 0;
    if (*augmentation == 'z') {
        uint64_t bytes = take_uleb(&r);
        if (r.bad || bytes > (uint64_t)(r.end - r.at))
            return 0;
        reader data = { r.at, r.at + bytes, 0 };
        r.at += bytes;
        c->has_data = 1;
        for (const uint8_t *a = augmentation + 1; *a; a++) {
            uint8_t encoding;
            switch (*a) {
            case 'R': c->pointer_encoding = (uint8_t)take(&data, 1); break;
            case 'L': (void)take(&data, 1); break;
            case 'P': /* the personality's address, which may be indirect: only its size counts */
                encoding = (uint8_t)take(&data, 1);
                (void)take_pointer(&data, encoding & 0x0f);
                break;
            default: return 0; /* 'S', a signal frame, and what is unknown */
            }
        }
        if (data.bad)
            return 0;
    } else if (*augmentation) {
        return 0;
    }
    c->program = r;
    return 1;
}

static void to_rule(const row *w, tn_cfi_rule *out)
{
    if (w->ra.kind == UNDEFINED) {
        out->kind = TN_CFI_END;
        return;
    }
    if (w->cfa_is_expression || w->ra.kind != SAVED || w->cfa_offset != (int32_t)w->cfa_offset || w->ra.offset != (int32_t)w->ra.offset ||
        w->fp.offset != (int32_t)w->fp.offset)
        return;
    if (w->cfa_register != REG_SP && w->cfa_register != REG_FP)
        return;
    out->kind = w->cfa_register == REG_SP ? TN_CFI_SP : TN_CFI_FP;
    out->cfa = (int32_t)w->cfa_offset;
    out->ra_offset = (int32_t)w->ra.offset;
    switch (w->fp.kind) {
    case UNSPECIFIED: /* a register that is kept across calls and not named */
    case SAME: out->fp = TN_CFI_FP_SAME; break;
    case SAVED:
        out->fp = TN_CFI_FP_SAVED;
        out->fp_offset = (int32_t)w->fp.offset;
        break;
    case UNDEFINED:
    case ELSEWHERE: out->fp = TN_CFI_FP_LOST; break;
    }
}

static void read_fde(const uint8_t *p, const uint8_t *begin, const uint8_t *end, uint64_t target, tn_cfi_rule *out)
{
    reader r;
    cie c;
    if (!open_entry(p, end, &r))
        return;
    const uint8_t *place = r.at;
    uint64_t back = take(&r, 4);
    if (back == 0 || back > (uint64_t)(place - begin) || !read_cie(place - back, end, &c))
        return;
    uint64_t start = take_pointer(&r, c.pointer_encoding);
    uint64_t bytes = take_pointer(&r, c.pointer_encoding & 0x0f);
    if (c.has_data)
        skip(&r, take_uleb(&r));
    if (r.bad || target < start || target - start >= bytes)
        return;
    row initial, w;
    memset(&initial, 0, sizeof initial);
    if (!run(c.program, &c, 0, 0, &initial, NULL))
        return;
    w = initial;
    if (run(r, &c, start, target, &w, &initial))
        to_rule(&w, out);
}

/* ---- the search table */

typedef struct query {
    uint64_t target;
    tn_cfi_rule *out;
} query;

/* The PT_LOAD that holds addr. */
static const ElfW(Phdr) *segment_of(const struct dl_phdr_info *info, uint64_t addr)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD && addr - (info->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
            return ph;
    }
    return NULL;
}

/* The FDE in the table whose function starts last at or before the target. 0: none. */
static const uint8_t *search(const uint8_t *header, const uint8_t *end, uint64_t target)
{
    reader r = { header, end, 0 };
    uint64_t version = take(&r, 1);
    uint8_t frame_encoding = (uint8_t)take(&r, 1), count_encoding = (uint8_t)take(&r, 1), table_encoding = (uint8_t)take(&r, 1);
    if (version != 1 || frame_encoding == PE_OMIT || count_encoding != PE_UDATA4 || table_encoding != PE_DATAREL_SDATA4)
        return NULL;
    (void)take_pointer(&r, frame_encoding);
    uint64_t low = 0, high = take(&r, 4);
    if (r.bad || high > (uint64_t)(end - r.at) / 8)
        return NULL;
    const uint8_t *found = NULL;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int32_t entry[2];
        memcpy(entry, r.at + 8 * middle, sizeof entry);
        if ((uint64_t)header + (uint64_t)(int64_t)entry[0] <= target) {
            found = header + entry[1];
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return found;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    const query *q = arg;
    if (!segment_of(info, q->target))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_GNU_EH_FRAME)
            continue;
        const uint8_t *header = (const uint8_t *)(info->dlpi_addr + ph->p_vaddr);
        const uint8_t *fde = search(header, header + ph->p_memsz, q->target);
        const ElfW(Phdr) *segment = fde ? segment_of(info, (uint64_t)fde) : NULL;
        if (segment && segment->p_flags & PF_R) {
            const uint8_t *begin = (const uint8_t *)(info->dlpi_addr + segment->p_vaddr);
            read_fde(fde, begin, begin + segment->p_filesz, q->target, q->out);
        }
        break;
    }
    return 1;
}

void tn_cfi_rule_of(uint64_t ret, tn_cfi_rule *out)
{
    query q = { ret - 1, out };
    memset(out, 0, sizeof *out);
    tn_iterate_phdr(visit, &q);
}
