#include "shim/python.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ledger/tn_hot_data.h"
#include "ledger/tn_lock.h"
#include "ledger/tn_sys.h"
#include "shim/callsite_tables.h"
#include "shim/gate.h"
#include "shim/hook.h"
#include "shim/python_chain.h"
#include "shim/python_layout.h"
#include "shim/python_places.h"
#include "shim/python_read.h"

#define INTERPRETERS 8 /* a host that loads and unloads libpython gets a Python part for so many */
#define WAITS 20000    /* of 50 us */
#define FAILURES_MAX 8 /* one odd code object proves nothing */
#define RANK_INTERPRETERS 179

typedef struct interpreter {
    tn_py py;
    _Atomic uint64_t epoch; /* known to be loaded in it; without meaning for a permanent one */
    _Atomic int proven;     /* a chain was read whole, with all types as they must be */
    _Atomic int failures;   /* before that; the layout does not fit where there are FAILURES_MAX */
} interpreter;

static interpreter slots[INTERPRETERS];
static int slot_count;
static tn_lock slots_lock = TN_LOCK_INIT(RANK_INTERPRETERS);
TN_HOT_DATA struct tn_python_present tn_python_present;
static _Atomic uint64_t loads_seen;
static _Atomic int inside; /* threads in an interpreter that a dlclose may take away */

static pthread_key_t cache_end;
static int have_key;
static __thread tn_py_cache *mine __attribute__((tls_model("initial-exec")));

/* ---- which interpreter */

static int is_same(const tn_py *a, const tn_py *b)
{
    return a->this_thread == b->this_thread && a->runtime == b->runtime && a->at.minor == b->at.minor;
}

static interpreter *publish(const tn_py *py, uint64_t epoch)
{
    interpreter *in = NULL;
    tn_lock_take(&slots_lock);
    for (int i = 0; i < slot_count && !in; i++)
        if (is_same(&slots[i].py, py)) in = &slots[i];
    if (!in && slot_count < INTERPRETERS) {
        in = &slots[slot_count++];
        in->py = *py;
    }
    if (in) atomic_store(&in->epoch, epoch);
    atomic_store(&tn_python_present.interpreter, in);
    tn_lock_release(&slots_lock);
    return in;
}

/* While a thread looks, no dlclose begins; while one runs, nobody looks. */
static interpreter *find(void)
{
    tn_py py;
    char why[160];
    interpreter *in = NULL;
    atomic_fetch_add(&inside, 1);
    uint64_t loads = tn_py_loads(), epoch = tn_epoch();
    if (tn_epoch_idle(epoch)) {
        int found = tn_py_find(&py, why, sizeof why);
        if (found < 0) tn_coverage(TN_COV_NOTE, why);
        if (found == 1) in = publish(&py, epoch);
        else if (atomic_exchange(&tn_python_present.interpreter, NULL)) atomic_store(&tn_python_present.has_gone, 1);
        /* Last: a thread that sees it sees the interpreter. 0: look again, whatever is loaded. */
        atomic_store(&loads_seen, found == TN_PY_LATER ? 0 : loads);
    }
    atomic_fetch_sub(&inside, 1);
    return in;
}

/* One may have come since the last look only if this native site is new (or was known from one that has gone), and so is an object of the process. */
static interpreter *look_for_one(uint32_t native)
{
    int is_new = native > atomic_load_explicit(&tn_python_present.newest_native, memory_order_relaxed) || atomic_load_explicit(&tn_python_present.has_gone, memory_order_relaxed);
    if (!is_new || tn_loader_forked()) return NULL;
    interpreter *in = tn_py_loads() != atomic_load(&loads_seen) ? find() : NULL;
    atomic_store_explicit(&tn_python_present.newest_native, native, memory_order_relaxed);
    return in;
}

static void leave(const interpreter *in)
{
    if (!in->py.permanent) atomic_fetch_sub(&inside, 1);
}

/* The interpreter, which stays loaded until leave(); NULL: none, or one that is going. */
static interpreter *enter(uint32_t native)
{
    interpreter *in = atomic_load_explicit(&tn_python_present.interpreter, memory_order_acquire);
    if (!in && !(in = look_for_one(native))) return NULL;
    if (in->py.permanent) return in;
    for (int tries = 0; tries < 2 && in; tries++) {
        atomic_fetch_add(&inside, 1);
        uint64_t epoch = tn_epoch();
        if (tn_epoch_idle(epoch) && epoch == atomic_load(&in->epoch)) return in;
        atomic_fetch_sub(&inside, 1);
        if (!tn_epoch_idle(epoch)) return NULL;
        in = find();
        if (in && in->py.permanent) return in;
    }
    return NULL;
}

void tn_python_dlclose_begin(void)
{
    /* A forked child has none that can be unloaded, and what it inherits as being inside one are threads of its parent's. */
    for (int i = 0; !tn_loader_forked() && i < WAITS && atomic_load(&inside) > 0; i++) syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL);
}

/* ---- this thread */

static void cache_ends(void *cache)
{
    mine = NULL;
    tn_sys_unmap(cache, sizeof(tn_py_cache));
}

void tn_python_start(void)
{
    const char *wish = secure_getenv("TENURE_PYTHON");
    if (wish && wish[0] == '0' && !wish[1]) {
        tn_coverage(TN_COV_TURNED_OFF, "TENURE_PYTHON=0: Python callers were not read");
        tn_python_present.is_off = 1;
        atomic_store(&tn_python_present.newest_native, UINT32_MAX);
        return;
    }
    have_key = pthread_key_create(&cache_end, cache_ends) == 0;
    (void)find();
}

static tn_py_cache *my_cache(void)
{
    if (!mine && have_key && (mine = tn_sys_map_memory(sizeof *mine))) pthread_setspecific(cache_end, mine);
    return mine;
}

static uint64_t runtime_word(const tn_py *py, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, (const void *)(py->runtime + offset), sizeof word);
    return word;
}

/* Up to 3.11 a thread's state is that of the first interpreter it ran in, whichever it runs in now. */
static int is_ambiguous(const tn_py *py)
{
    if (py->at.minor >= 12 || runtime_word(py, py->at.runtime_head) == runtime_word(py, py->at.runtime_main)) return 0;
    tn_coverage(TN_COV_NOTE, "several Python interpreters in one process: up to 3.11 they cannot be told apart, so sites have no Python part while there are");
    return 1;
}

static void say_once(_Atomic int *said, const char *text)
{
    if (!atomic_exchange(said, 1)) tn_coverage(TN_COV_NOTE, text);
}

static uint32_t look(tn_journal *journal, interpreter *in, uint32_t native)
{
    static _Atomic int said_guard, said_full;
    const tn_py *py = &in->py;
    if (atomic_load_explicit(&in->failures, memory_order_relaxed) >= FAILURES_MAX || !py->is_initialized() || py->is_finalizing()) return native;
    uint64_t state = (uint64_t)py->this_thread();
    tn_py_cache *cache = state ? my_cache() : NULL;
    if (!cache || is_ambiguous(py)) return native;
    int proven = atomic_load_explicit(&in->proven, memory_order_relaxed);
    if (!proven && !tn_py_can_guard()) {
        say_once(&said_guard, "this process may not use process_vm_readv on itself, so Python callers are not read");
        return native;
    }
    tn_py_call call = {.py = py, .cache = cache, .reader = {.pages = proven ? NULL : &cache->pages}};
    uint32_t site = native;
    int found = tn_py_innermost(&call, state) ? 1 : -1;
    if (py->is_finalizing()) return native; /* the state may have been freed, and what was read be anything */
    if (found > 0) found = tn_py_chain_site(&call, journal, native, &site);
    if (found > 0 && !proven) atomic_store_explicit(&in->proven, 1, memory_order_relaxed);
    if (found < 0 && !proven && atomic_fetch_add(&in->failures, 1) == FAILURES_MAX - 1) {
        char text[160] = "";
        snprintf(text, sizeof text, "Python %s: its layout is not the recorded one, so sites have no Python part", py->version);
        tn_coverage(TN_COV_NOTE, text);
    }
    if (tn_py_full())
        say_once(&said_full, "more Python functions, lines or call paths than are kept: later ones have no Python part");
    return found > 0 ? site : native;
}

uint32_t tn_python_find_site(tn_journal *journal, uint32_t native)
{
    if (native < TN_SITE_FIRST || tn_python_present.is_off) return native;
    int saved = errno;
    interpreter *in = enter(native);
    uint32_t site = native;
    if (in) {
        site = look(journal, in, native);
        leave(in);
    }
    errno = saved;
    return site;
}
