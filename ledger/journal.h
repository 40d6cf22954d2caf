/* The journal's writer, for use inside a host program's hooks: no malloc, no stdio, no lock on the path of
 * one event. A tn_journal belongs to the process and lives until it ends; a tn_journal_thread belongs to
 * its thread, and only that thread (or a signal handler on it) may use it. In a forked child the parent's
 * journal is gone (Linux 4.14 and later): calls on it do nothing; pointers to slots and counters must not be
 * used there. errno is left as it was by every function. */
#ifndef TENURE_LEDGER_JOURNAL_H
#define TENURE_LEDGER_JOURNAL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "ledger/journal_format.h"
#include "ledger/tn_error.h"

typedef struct tn_journal tn_journal;
typedef struct tn_journal_thread tn_journal_thread;

/* What the writer needs of the operating system, so that tests can fail any call. NULL fields of a table
 * handed in stand for the real call. Each returns -1 and sets errno on failure. */
typedef struct tn_journal_os {
    int (*open_exclusive)(const char *path); /* O_CREAT|O_EXCL|O_RDWR|O_CLOEXEC, mode 0600 */
    int (*preallocate)(int fd, int64_t offset, int64_t bytes); /* fallocate semantics; EOPNOTSUPP: cannot */
    void *(*map)(int fd, int64_t offset, size_t bytes);        /* shared, writable; NULL on failure */
    int64_t (*write_at)(int fd, const void *p, size_t bytes, int64_t offset);
    int64_t (*file_size_limit)(void); /* RLIMIT_FSIZE in bytes, INT64_MAX if none: read before growing, or SIGXFSZ kills the program */
} tn_journal_os;

typedef struct tn_journal_options {
    const char *run_dir;        /* exists and is a folder */
    uint64_t max_bytes;         /* the file never grows beyond; 0 = 8 GiB. Beyond it events are dropped and counted */
    uint32_t header_flags;      /* TN_HF_* known at the start */
    uint32_t shim_version;
    uint32_t api_count;
    const char *libtenure_path;
    const tn_journal_os *os;    /* NULL: the real one */
} tn_journal_options;

/* Creates RUN_DIR/<host>-<pid>-<16 hex digits>.tnj exclusively and private (0600), writes the header, and
 * returns the journal in *out (static storage of the library or its own mapping; never free it).
 * Errors: TN_E_OPEN, TN_E_NOSPACE, TN_E_IO, TN_E_NOMEM. Thread rule: once per process life, by one thread. */
TN_MUST_USE tn_error tn_journal_open(const tn_journal_options *options, tn_journal **out);

/* What the journal says of its process; constant but for what it counts. */
const tn_journal_header *tn_journal_header_of(const tn_journal *j);

/* The calling thread's writer, perhaps one that a thread which ended has handed back. NULL when no memory is left for it; then
 * tn_journal_slot(j, NULL, ...) is legal and drops. Takes the growth lock: not from a signal handler inside a hook. */
tn_journal_thread *tn_journal_attach(tn_journal *j, uint32_t tid);
/* At thread end: hands the rest of its chunk, its counter block and its number back. The pointer is dead afterwards. Not nested. */
void tn_journal_detach(tn_journal *j, tn_journal_thread *t);

/* A zeroed slot for one event, or NULL when it has to be dropped (already counted). Never blocks except when a chunk is
 * full, when it takes the journal's growth lock for one fallocate and mmap. `nested` (a call from a signal handler inside a
 * hook) never takes that lock: it drops instead. Fill all fields but `type`, then commit. A slot, like tn_journal_last's event, may be used
 * until this thread's next call that is not nested: that one may put the chunk away. */
tn_event *tn_journal_slot(tn_journal *j, tn_journal_thread *t, int nested) __attribute__((hot));
static inline void tn_journal_commit(tn_event *e, tn_event_type type)
{
    __atomic_store_n(&e->type, (uint8_t)type, __ATOMIC_RELEASE);
}
/* The last event this thread committed in its present chunk, or NULL: WORK events of one stream are merged into it. */
tn_event *tn_journal_last(tn_journal_thread *t);

/* Writes one record (TN_REC_*), payload = two parts one after the other (the second may be NULL). Takes the records lock; may be
 * called by any thread, not from a signal handler. TN_E_NOSPACE or TN_E_LIMIT: dropped and counted. */
tn_error tn_journal_record(tn_journal *j, uint32_t type, const void *a, size_t a_bytes, const void *b, size_t b_bytes);

/* The thread's own counter block, TN_COUNTERS u64 in the mapped file; when the file cannot grow, a block in memory that is lost at exit
 * (the calls it counted are then counted in dropped_events at detach). Never NULL for a non-NULL t. Takes no lock. */
uint64_t *tn_journal_counters(tn_journal_thread *t);

void tn_journal_drop(tn_journal *j, uint64_t n);           /* counts n dropped events */
void tn_journal_set_flags(tn_journal *j, uint32_t flags);  /* ors TN_HF_* in */
void tn_journal_set_versions(tn_journal *j, uint32_t driver, uint32_t runtime); /* 0 leaves a field as it is */
/* At process exit: buffered journals are flushed, TN_HF_ENDED is set, the clock pair refreshed. No CUDA call, no output. */
void tn_journal_end(tn_journal *j);
const char *tn_journal_path(const tn_journal *j);

/* The stamp counter: rdtsc on x86-64, cntvct_el0 on aarch64. */
static inline uint64_t tn_stamp(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ __volatile__("isb; mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
#error "unsupported architecture"
#endif
}

#endif
