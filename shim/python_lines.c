#include "shim/python_lines.h"

#include "shim/python_layout.h"

/* Up to 3.9: pairs of (bytes of code, signed lines); a line holds until the next pair's code begins. */
static int64_t by_lnotab(const uint8_t *t, size_t bytes, int64_t line, int64_t at, size_t *used)
{
    int64_t code = 0;
    size_t i = 0;
    for (; i + 1 < bytes; i += 2) {
        code += t[i];
        if (code > at) break;
        line += (int8_t)t[i + 1];
    }
    *used = i + 2 <= bytes ? i + 1 : bytes; /* a pair that ends it decides by its first byte; the end of the table by its length */
    return line;
}

/* 3.10: pairs of (bytes of code, signed lines) that describe one range after the other; -128 is a range of no line. */
static int64_t by_ranges(const uint8_t *t, size_t bytes, int64_t line, int64_t at, size_t *used)
{
    int64_t end = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        int delta = (int8_t)t[i + 1];
        end += t[i];
        if (delta != -128) line += delta;
        *used = i + 2;
        if (at < end) return delta == -128 ? 0 : line;
    }
    *used = bytes;
    return 0;
}

static size_t signed_number(const uint8_t *t, size_t bytes, size_t i, int64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; i < bytes && shift < 42; shift += 6) {
        uint8_t b = t[i++];
        v |= (uint64_t)(b & 63) << shift;
        if (!(b & 64)) break;
    }
    *out = v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
    return i;
}

/* From 3.11: entries that start with a byte whose top bit is set, its kind in the next four, the code units it covers (less one) in the last
 * three; columns, which follow, are passed over. */
static int64_t by_locations(const uint8_t *t, size_t bytes, int64_t line, int64_t at, size_t *used)
{
    int64_t end = 0;
    for (size_t i = 0; i < bytes;) {
        unsigned kind = (t[i] >> 3) & 15;
        int64_t delta = 0;
        end += ((t[i] & 7) + 1) * 2;
        i++;
        if (kind == 13 || kind == 14) i = signed_number(t, bytes, i, &delta);
        else if (kind >= 10 && kind <= 12) delta = kind - 10;
        line += delta;
        *used = i;
        if (at < end) return kind == 15 ? 0 : line;
        while (i < bytes && !(t[i] & 128)) i++;
    }
    *used = bytes;
    return 0;
}

uint32_t tn_py_line(int format, const uint8_t *table, size_t bytes, uint32_t first_line, int64_t at, size_t *used)
{
    int64_t line = first_line;
    *used = 0;
    if (at < 0) return first_line;
    if (format == TN_PY_LNOTAB) line = by_lnotab(table, bytes, line, at, used);
    else if (format == TN_PY_RANGES) line = by_ranges(table, bytes, line, at, used);
    else line = by_locations(table, bytes, line, at, used);
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
