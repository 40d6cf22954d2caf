/* Names of C++, Rust and D as their sources have them, by libiberty. */
#include <libiberty/demangle.h>

#include "report/report_symbol_job.h"

char *tn_demangle(const char *name)
{
    /* Nothing else is mangled; a C function may be called "_R" and would be taken for one. */
    if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R' && name[1] != 'D'))
        return 0;
    return cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
}
