/* A size is read digit by digit; a unit of 2^10n doubles the whole decimal 10n times, so that its fraction loses nothing. */
#include "planner/size_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct unit {
    char name[4];
    unsigned shift;
} units[] = {{"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};

enum {
    UNITS = sizeof(units) / sizeof(units[0]),
    /* A fraction that is whole in some unit has 40 digits at most; what lies behind 64 can only round up. */
    FRACTION_DIGITS = 64
};

typedef struct decimal {
    uint64_t whole;
    unsigned char digits[FRACTION_DIGITS]; /* of the fraction, the first one the tenths */
    size_t count;
    bool rest; /* something other than 0 stood behind them */
} decimal;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* value * 2 + carry, false where it has no place. */
static bool twice(uint64_t *value, unsigned carry)
{
    if (*value >> 63)
        return false;
    *value = *value << 1 | carry;
    return true;
}

static bool scale(decimal *d, unsigned shift)
{
    for (unsigned i = 0; i < shift; i++) {
        unsigned carry = 0;
        for (size_t k = d->count; k-- > 0;) {
            unsigned digit = d->digits[k] * 2u + carry;
            carry = digit >= 10;
            d->digits[k] = (unsigned char)(digit - (carry ? 10 : 0));
        }
        if (!twice(&d->whole, carry))
            return false;
    }
    bool between = d->rest;
    for (size_t k = 0; k < d->count; k++)
        between |= d->digits[k] != 0;
    if (between && d->whole == UINT64_MAX)
        return false;
    d->whole += between;
    return true;
}

static tn_size_error fail(tn_size_error error, size_t where, size_t *at)
{
    if (at)
        *at = where;
    return error;
}

static const struct unit *find_unit(const char *text, size_t length)
{
    for (size_t i = 0; i < UNITS; i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, text, length) == 0)
            return &units[i];
    return NULL;
}

tn_size_error tn_size_read(const char *text, size_t length, uint64_t *bytes, size_t *at)
{
    decimal d = {0};
    size_t i = 0;
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    while (i < length && is_blank(text[i]))
        i++;
    if (i == length)
        return fail(TN_SIZE_EMPTY, i, at);

    size_t number = i;
    if (!is_digit(text[i]))
        return fail(TN_SIZE_NUMBER, i, at);
    for (; i < length && is_digit(text[i]); i++)
        if (__builtin_mul_overflow(d.whole, (uint64_t)10, &d.whole) ||
            __builtin_add_overflow(d.whole, (uint64_t)(text[i] - '0'), &d.whole))
            return fail(TN_SIZE_TOO_LARGE, number, at);
    if (i < length && text[i] == '.') {
        size_t first = ++i;
        for (; i < length && is_digit(text[i]); i++) {
            if (d.count < FRACTION_DIGITS)
                d.digits[d.count++] = (unsigned char)(text[i] - '0');
            else
                d.rest |= text[i] != '0';
        }
        if (i == first)
            return fail(TN_SIZE_NUMBER, i, at);
    }

    while (i < length && is_blank(text[i]))
        i++;
    const struct unit *unit = i == length ? &units[0] : find_unit(text + i, length - i);
    if (!unit)
        return fail(TN_SIZE_UNIT, i, at);
    if (!scale(&d, unit->shift))
        return fail(TN_SIZE_TOO_LARGE, number, at);
    *bytes = d.whole;
    return TN_SIZE_OK;
}

const char *tn_size_error_text(tn_size_error error)
{
    static const char *const texts[TN_SIZE_ERRORS] = {
        [TN_SIZE_OK] = "it is a size",
        [TN_SIZE_EMPTY] = "a size is a number with or without a unit, such as 512MiB",
        [TN_SIZE_NUMBER] = "a number must stand there, such as 512 or 1.5",
        [TN_SIZE_UNIT] = "the unit must be B, KiB, MiB, GiB or TiB, which count in powers of 1024",
        [TN_SIZE_TOO_LARGE] = "it is more than 2^64 - 1 bytes",
    };
    return (unsigned)error < TN_SIZE_ERRORS ? texts[error] : "it is no size";
}

void tn_size_explain(const char *text, size_t length, tn_size_error error, size_t at, char *out, size_t size)
{
    enum { SHOWN = 40 };
    char shown[SHOWN + 4];
    size_t n = length < SHOWN ? length : SHOWN;
    for (size_t i = 0; i < n; i++)
        shown[i] = text[i] >= ' ' && text[i] < 0x7f && text[i] != '"' ? text[i] : '?';
    snprintf(shown + n, sizeof(shown) - n, "%s", length > SHOWN ? "..." : "");
    snprintf(out, size, "\"%s\" is no size: at character %zu, %s", shown, at + 1, tn_size_error_text(error));
}

const char *tn_size_write(uint64_t bytes, char out[TN_SIZE_TEXT])
{
    size_t unit = 0;
    if (bytes)
        while (unit + 1 < UNITS && (bytes & (((uint64_t)1 << units[unit + 1].shift) - 1)) == 0)
            unit++;
    snprintf(out, TN_SIZE_TEXT, "%" PRIu64 "%s", bytes >> units[unit].shift, unit ? units[unit].name : "");
    return out;
}
