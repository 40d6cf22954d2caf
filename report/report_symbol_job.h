/* One module's look-up, as the reading child does it: what is asked, and how answers are told. Everything here runs in a
 * process that may be killed at any moment, so no answer waits for the end of its module for long. One thread. */
#ifndef TENURE_REPORT_REPORT_SYMBOL_JOB_H
#define TENURE_REPORT_REPORT_SYMBOL_JOB_H

#include <libelf.h>

#include "report/report_symbol.h"

enum { TN_SYMBOL_NAME_MAX = 4096, TN_SYMBOL_INLINED_MAX = 64 };

typedef struct tn_symbol_job {
    const char *path;
    const uint8_t *build_id;
    uint8_t build_id_bytes;
    const uint64_t *offsets; /* return addresses, rising */
    size_t count;
    const tn_symbol_options *options;
    void *teller; /* of the functions below */
} tn_symbol_job;

/* Written by report_symbol_child.c. `i` is an index in offsets. Strings are cut at TN_SYMBOL_NAME_MAX. */
void tn_tell_name(const tn_symbol_job *job, size_t i, const char *name, const char *source, uint64_t delta);
void tn_tell_frames(const tn_symbol_job *job, size_t i, const tn_symbol_frame *frames, uint32_t count);
/* Of every address of the job that has no answer. */
void tn_tell_name_state(const tn_symbol_job *job, tn_symbol_state state);
void tn_tell_line_state(const tn_symbol_job *job, tn_symbol_state state);

/* The two rounds. Names come from symbol tables, files and lines (and names that no table has) from debug information. */
void tn_symbol_names(const tn_symbol_job *job);
void tn_symbol_lines(const tn_symbol_job *job);

/* Opens the module's file; *fd is to be closed after elf_end. NULL with the reason. */
Elf *tn_symbol_open(const tn_symbol_job *job, int *fd, tn_symbol_state *why);
/* Opens its separate debug file, found by build-id. NULL where there is none that is right. */
Elf *tn_symbol_open_debug(const tn_symbol_job *job, int *fd);
/* 1 where the file has a section of that type (SHT_*) or, with a name, of that name. */
int tn_symbol_has_section(Elf *elf, unsigned type, const char *name);

/* The name demangled (C++, Rust, D); NULL where it is not mangled. Free it. */
char *tn_demangle(const char *name);

#endif
