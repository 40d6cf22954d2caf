/* The options of CPython and PyPy, as far as they stand in front of a script. */
#include "planner/program_script.h"

#include <string.h>

#include "planner/text_mask.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int is_interpreter(const char *exe)
{
    const char *name = base_name(exe);
    size_t n = strncmp(name, "python", 6) == 0 ? 6 : strncmp(name, "pypy", 4) == 0 ? 4 : 0;
    return n > 0 && name[n + strspn(name + n, "0123456789.td")] == 0;
}

static int put(char *out, size_t room, const char *before, const char *text)
{
    size_t lead = strlen(before), length = strlen(text);
    if (lead + length + 1 > room)
        return 0;
    memcpy(out, before, lead);
    memcpy(out + lead, text, length + 1);
    tn_text_mask(out); /* as plans have it */
    return 1;
}

int tn_program_script(const char *exe, const char *cmdline, size_t bytes, char *out, size_t room)
{
    if (!is_interpreter(exe))
        return 0;
    const char *end = cmdline + bytes;
    const char *at = memchr(cmdline, 0, bytes);
    while (at && ++at < end && *at) {
        const char *next = memchr(at, 0, (size_t)(end - at));
        if (!next)
            break;
        if (at[0] != '-' || at[1] == 0)
            return put(out, room, "", base_name(at));
        /* Letters of options may stand together; -m and -c take the rest, or the next argument, and end the list. */
        size_t letter = at[1] == '-' ? 0 : strcspn(at + 1, "mcWXQ") + 1;
        char what = letter && letter < (size_t)(next - at) ? at[letter] : 0;
        if (what == 'c')
            return put(out, room, "", "-c");
        const char *value = what && at[letter + 1] ? at + letter + 1 : next + 1;
        if (what == 'm')
            return value < end && memchr(value, 0, (size_t)(end - value)) && put(out, room, "-m ", value);
        if (what && value == next + 1)
            next = value < end ? memchr(value, 0, (size_t)(end - value)) : NULL;
        at = next;
    }
    return 0;
}
