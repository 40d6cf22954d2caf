#include "shim/python_layout.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "shim/elf.h"
#include "shim/gate.h"
#include "shim/hook.h"
#include "shim/modules.h"
#include "shim/python_read.h"

/* From 3.13 on the interpreter says by itself where things are: a table of 64-bit words at the start of _PyRuntime, whose order is fixed for
 * a minor version. Which word is which: */
typedef struct said {
    uint16_t minor, words; /* of the part that is read */
    uint16_t head, interp, frame, previous, code, instr, owner, file, name, table, first_line, start, type, bytes_length, bytes_text, state, length,
        ascii;
} said;
static const said tables[] = {
    {13, 71, 5, 22, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70},
    {14, 81, 5, 25, 26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80},
};
#define SAID_WORDS 81
#define COOKIE 0x7970677562656478u /* "xdebugpy" */

/* 1: the layout is what the interpreter says. */
static int take_said(tn_py *py, unsigned minor)
{
    uint64_t w[SAID_WORDS];
    const said *s = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (tables[i].minor == minor) s = &tables[i];
    if (!s || !tn_py_copy_guarded(py->runtime, w, s->words * sizeof w[0])) return 0;
    if (w[0] != COOKIE || w[1] >> 16 != (0x0300u | minor) || w[2] != 0 /* built without the interpreter's lock */) return 0;
    if (w[s->type] != TN_PY_OB_TYPE || w[s->bytes_length] != TN_PY_BYTES_LENGTH || w[s->bytes_text] != TN_PY_BYTES_TEXT ||
        w[s->state] != TN_PY_STRING_STATE || w[s->length] != TN_PY_STRING_LENGTH || w[s->ascii] != 40)
        return 0;
    for (unsigned i = 3; i < s->words; i++)
        if (w[i] > 1u << 24) return 0;
    tn_py_layout *at = &py->at;
    *at = *tn_py_layout_of(13);
    at->minor = (uint16_t)minor;
    at->state_interp = (uint16_t)w[s->interp];
    at->state_frame = (uint16_t)w[s->frame];
    at->frame_previous = (uint16_t)w[s->previous];
    at->frame_code = (uint16_t)w[s->code];
    at->frame_instr = (uint16_t)w[s->instr];
    at->frame_owner = (uint16_t)w[s->owner];
    at->code_file = (uint16_t)w[s->file];
    at->code_name = (uint16_t)w[s->name];
    at->code_table = (uint16_t)w[s->table];
    at->code_first_line = (uint16_t)w[s->first_line];
    at->code_start = (uint16_t)w[s->start];
    at->code_traceable = (uint16_t)(w[s->start] - 16); /* the last two fields before the code: this index, and a pointer */
    at->runtime_head = (uint32_t)w[s->head];
    at->runtime_main = at->runtime_head + 8;
    return 1;
}

typedef struct scan {
    struct { uint64_t at; unsigned minor; } candidates[4]; /* each libpython3: an address in it, and what its name says */
    int count;
} scan;

static int look(struct dl_phdr_info *o, size_t size, void *arg)
{
    scan *s = arg;
    (void)size;
    if (!o->dlpi_name || strncmp(tn_basename(o->dlpi_name), "libpython3.", 11) != 0) return 0;
    for (int i = 0; i < o->dlpi_phnum && s->count < 4; i++)
        if (o->dlpi_phdr[i].p_type == PT_LOAD) {
            s->candidates[s->count].at = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;
            s->candidates[s->count++].minor = (unsigned)strtoul(tn_basename(o->dlpi_name) + strlen("libpython3."), NULL, 10);
            break;
        }
    return 0;
}

static int look_first(struct dl_phdr_info *o, size_t size, void *arg)
{
    (void)size;
    *(uint64_t *)arg = o->dlpi_adds;
    return 1;
}

uint64_t tn_py_loads(void)
{
    uint64_t loads = 0;
    if (tn_loader_forked()) return 0;
    tn_loader_enter();
    tn_iterate_phdr(look_first, &loads);
    tn_loader_leave();
    return loads;
}

/* An interpreter's functions, and nothing of it called yet. */
typedef struct found {
    tn_py py;
    const char *(*text)(void);
} found;

static int find_around(uint64_t where, found *f)
{
    tn_py *py = &f->py;
    const void *from = (const void *)where;
    union { const void *p; void *(*state)(void); int (*flag)(void); const char *(*text)(void); } u;
#define FIND(name) (u.p = tn_elf_find(from, name))
    if (!FIND("PyGILState_GetThisThreadState")) return 0;
    py->this_thread = u.state;
    if (!FIND("Py_IsInitialized")) return 0;
    py->is_initialized = u.flag;
    if (!FIND("_Py_IsFinalizing") && !FIND("Py_IsFinalizing")) return 0;
    py->is_finalizing = u.flag;
    py->runtime = (uint64_t)FIND("_PyRuntime");
    py->code_type = (uint64_t)FIND("PyCode_Type");
    py->string_type = (uint64_t)FIND("PyUnicode_Type");
    py->bytes_type = (uint64_t)FIND("PyBytes_Type");
    if (!FIND("Py_GetVersion")) return 0;
    f->text = u.text;
#undef FIND
    return py->runtime && py->code_type && py->string_type && py->bytes_type;
}

static int identify(tn_py *py, const char *version, char *why, unsigned why_bytes)
{
    size_t n = strcspn(version, " ");
    if (n >= sizeof py->version) n = sizeof py->version - 1;
    memcpy(py->version, version, n);
    py->version[n] = 0;
    char *rest = NULL;
    unsigned long minor = strncmp(py->version, "3.", 2) == 0 ? strtoul(py->version + 2, &rest, 10) : 0;
    const tn_py_layout *known = tn_py_layout_of((unsigned)minor);
    const char *reason = "its layout is not known";
    if (strstr(version, "free-threading")) reason = "it is built without the global lock";
    else if (strpbrk(py->version, "ab")) reason = "it is a pre-release, whose layout may change";
    else if (minor >= 13 ? take_said(py, (unsigned)minor) : known != NULL) {
        if (minor < 13) py->at = *known;
        return 1;
    }
    snprintf(why, why_bytes, "Python %s: %s, so sites have no Python part", py->version, reason);
    return -1;
}

static found in_program; /* filled before main, when there is one thread */
static int is_in_program;

__attribute__((constructor)) static void look_in_program(void)
{
    if (tn_wanted()) is_in_program = find_around(getauxval(AT_ENTRY), &in_program);
}

/* Whether it has an interpreter. The loader lists a library before it has relocated it, when nothing in it may be called; but an interpreter
 * is made long after that, and to see it takes no call. */
static int has_begun(tn_py *py, unsigned minor)
{
    uint64_t main_interpreter = 0;
    const tn_py_layout *known = tn_py_layout_of(minor);
    if (minor >= 13) (void)take_said(py, minor);
    else if (known) py->at = *known;
    return py->at.minor && tn_py_copy_guarded(py->runtime + py->at.runtime_main, &main_interpreter, sizeof main_interpreter) && main_interpreter;
}

/* 1: found; 0: there is none; 2: one that has not begun. */
static int find_library(found *f)
{
    scan s = {0};
    int is_found = 0;
    if (tn_loader_forked()) return 0;
    tn_loader_enter();
    tn_iterate_phdr(look, &s);
    for (int i = 0; i < s.count && is_found != 1; i++)
        if (find_around(s.candidates[i].at, f)) is_found = has_begun(&f->py, s.candidates[i].minor) ? 1 : 2;
    tn_loader_leave();
    return is_found;
}

int tn_py_find(tn_py *py, char *why, unsigned why_bytes)
{
    found f = in_program;
    int in_library = is_in_program ? 0 : find_library(&f);
    if (in_library == 2) return TN_PY_LATER;
    if (!is_in_program && !in_library) return 0;
    *py = f.py;
    py->permanent = is_in_program;
    return identify(py, f.text(), why, why_bytes);
}
