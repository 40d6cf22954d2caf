/* Names, files and lines for return addresses, from the modules' files on this machine and their separate debug files. The
 * files are read in a child process, so that one that is damaged or hostile, or takes too long, costs names and nothing
 * else. A tn_symbols owns everything it returns until it is freed; one thread uses it. Ask for all frames first
 * (tn_symbols_want), then look them up: what belongs together is read once. */
#ifndef TENURE_REPORT_REPORT_SYMBOL_H
#define TENURE_REPORT_REPORT_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/journal_format.h"

typedef struct tn_symbols tn_symbols;

/* Why something is missing; TN_SYMBOL_FOUND when it is not. Of a name: the first group. Of file and line: also the second. */
typedef enum tn_symbol_state {
    TN_SYMBOL_FOUND = 0,
    TN_SYMBOL_JIT,          /* code in no file */
    TN_SYMBOL_NO_FILE,      /* the module's file is not on this machine, or cannot be read */
    TN_SYMBOL_NOT_ELF,      /* the file at its path is no ELF file */
    TN_SYMBOL_NO_ID,        /* the module had no build-id, so the file cannot be known to be the same */
    TN_SYMBOL_OTHER_FILE,   /* the file at its path has another build-id */
    TN_SYMBOL_STRIPPED,     /* only exported functions have names, and none of them holds the address */
    TN_SYMBOL_NOT_IN_TABLE, /* no function of the full table holds the address */
    TN_SYMBOL_TIME,         /* not reached within the time given */
    TN_SYMBOL_FAILED,       /* the reader crashed, ran out of memory or took too long over this module */
    TN_SYMBOL_NO_READER,    /* no process could be started to read it */
    TN_SYMBOL_NO_DEBUG,     /* no debug information, and no separate file with it */
    TN_SYMBOL_DEBUG_LARGE,  /* the debug information is larger than allowed */
    TN_SYMBOL_DEBUG_BAD,    /* it cannot be read */
    TN_SYMBOL_NOT_COVERED,  /* it says nothing about the address */
    TN_SYMBOL_STATE_COUNT
} tn_symbol_state;

/* One function of the source at an address: several where some are inlined into others. */
typedef struct tn_symbol_frame {
    const char *function; /* demangled; NULL = unknown */
    const char *file;     /* NULL = unknown */
    uint32_t line;        /* 0 = unknown */
} tn_symbol_frame;

typedef struct tn_symbol {
    tn_symbol_state state;      /* of name and function */
    tn_symbol_state line_state; /* of files and lines */
    const char *name;     /* as linked; NULL where state is not FOUND */
    const char *function; /* the same, demangled where it is mangled */
    const char *source;   /* where the name is from: "dynsym", "symtab" (not exported), "debug" */
    uint64_t delta;       /* distance of the return address from the function's start */
    const tn_symbol_frame *frames; /* innermost first, the last one is the function that stands in the table */
    uint32_t frame_count; /* 0 where line_state is not FOUND */
} tn_symbol;

typedef struct tn_symbol_options {
    double seconds;        /* for all look-ups together; 0 asks for no names at all */
    uint64_t debug_bytes;  /* debug information of a module beyond this is not read; the reader's own memory has the same limit */
    const char *debug_dir; /* looked through before /usr/lib/debug: DIR/.build-id/xx/yyyy.debug; NULL = none */
} tn_symbol_options;

#define TN_SYMBOL_SECONDS 5.0
#define TN_SYMBOL_DEBUG_BYTES ((uint64_t)512 << 20)

/* `options` NULL: 5 s, 512 MiB, no folder. The folder's name must outlive the tn_symbols. NULL when no memory is left. */
tn_symbols *tn_symbols_new(const tn_symbol_options *options);
void tn_symbols_free(tn_symbols *symbols);

/* Notes that the call which returns to `offset` (an address of the module less its load base) will be asked for.
 * `module` NULL stands for one whose record was dropped. What memory is not there for is not noted. */
void tn_symbols_want(tn_symbols *symbols, const tn_rec_module *module, const char *path, uint64_t offset);
/* The answer, never NULL. Looks up everything that is wanted and has no answer yet, then and there. */
const tn_symbol *tn_symbols_get(tn_symbols *symbols, const tn_rec_module *module, const char *path, uint64_t offset);
/* A short phrase; NULL for TN_SYMBOL_FOUND. */
const char *tn_symbol_state_text(tn_symbol_state state);

#endif
