/* Modules and sites of the process, under one lock. See callsite_tables.h. */
#include "shim/callsite_keys.h"
#include "shim/callsite_tables.h"

#include <stddef.h>
#include <string.h>

#include "ledger/tn_lock.h"
#include "shim/callsite_memory.h"

/* Journal records are written under it: after the ledger's ranks, before the journal's. */
#define RANK_SITES 190
static tn_lock lock = TN_LOCK_INIT(RANK_SITES);
static tn_pool pool;

void tn_tables_lock(void)
{
    tn_lock_take(&lock);
}

void tn_tables_unlock(void)
{
    tn_lock_release(&lock);
}

/* ---- modules: some hundred at most, searched one after another on a miss of the raw cache only */

typedef struct module_node {
    tn_site_module m;
    struct module_node *next;
} module_node;

static module_node *modules, *jit;
static uint32_t module_records;

const tn_site_module *tn_site_module_at(uint64_t epoch, uint64_t addr)
{
    if (!tn_epoch_idle(epoch))
        return NULL;
    for (const module_node *node = modules; node; node = node->next)
        if (node->m.epoch == epoch && addr >= node->m.segment && addr < node->m.segment_end)
            return &node->m;
    return NULL;
}

/* Part of the key, so fixed for good: byte by byte, the length last. */
static uint64_t hash_build_id(const uint8_t *id, uint32_t bytes)
{
    uint64_t h = 0x6275696c642d6964u;
    for (uint32_t i = 0; i < bytes; i++) {
        h = (h ^ id[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return (h ^ bytes) * 0x9e3779b97f4a7c15u;
}

static int same_build_id(const tn_site_module *m, const tn_module_info *info)
{
    return m->build_id_bytes == info->build_id_bytes && m->hashed == info->hashed && memcmp(m->build_id, info->build_id, info->build_id_bytes) == 0;
}

static void write_module(tn_journal *journal, const tn_site_module *m, uint64_t end, const char *path)
{
    tn_rec_module rec;
    memset(&rec, 0, sizeof rec);
    rec.id = m->record;
    rec.build_id_bytes = m->hashed ? 0 : m->build_id_bytes;
    memcpy(rec.build_id, m->build_id, sizeof rec.build_id);
    rec.hashed = m->hashed;
    rec.jit = m->is_jit;
    rec.base = m->base;
    rec.end = end;
    /* A record that does not fit is counted by the journal; the id is used all the same, and the reader shows it as unknown. */
    (void)tn_journal_record(journal, TN_REC_MODULE, &rec, sizeof rec, path, strlen(path) + 1);
}

const tn_site_module *tn_site_module_intern(tn_journal *journal, uint64_t epoch, const tn_module_info *info)
{
    uint32_t identity = 0;
    for (module_node *node = modules; node; node = node->next) {
        if (!same_build_id(&node->m, info))
            continue;
        if (node->m.base == info->base) {
            node->m.epoch = epoch;
            node->m.segment = info->segment;
            node->m.segment_end = info->segment_end;
            return &node->m;
        }
        identity = node->m.identity;
    }
    module_node *node = tn_pool_take(&pool, sizeof *node);
    if (!node)
        return NULL;
    tn_site_module *m = &node->m;
    m->base = info->base;
    m->segment = info->segment;
    m->segment_end = info->segment_end;
    m->epoch = epoch;
    m->hash = hash_build_id(info->build_id, info->build_id_bytes);
    m->record = ++module_records;
    m->identity = identity ? identity : m->record;
    memcpy(m->build_id, info->build_id, sizeof m->build_id);
    m->build_id_bytes = info->build_id_bytes;
    m->hashed = info->hashed;
    m->is_cudart = (uint8_t)tn_is_libcudart(info->path);
    node->next = modules;
    modules = node;
    write_module(journal, m, info->end, info->path);
    return m;
}

const tn_site_module *tn_site_module_jit(tn_journal *journal)
{
    if (jit)
        return &jit->m;
    module_node *node = tn_pool_take(&pool, sizeof *node);
    if (!node)
        return NULL;
    node->m.hash = 0x616e6f6e796d6f75u;
    node->m.record = node->m.identity = ++module_records;
    node->m.is_jit = 1;
    jit = node;
    write_module(journal, &node->m, 0, "jit");
    return &node->m;
}

/* ---- sites */

typedef struct site {
    uint64_t key;
    uint32_t id, n;
    struct {
        uint64_t identity, offset;
    } frames[];
} site;

static site **slots;
static uint64_t slot_count, site_count;
static uint32_t next_id = TN_SITE_FIRST;
uint32_t tn_sites_max = TN_SITES_MAX;

static int grow_sites(void)
{
    uint64_t count = slot_count ? 2 * slot_count : 1024;
    site **bigger = tn_pages(count * sizeof *bigger);
    if (!bigger)
        return 0;
    for (uint64_t i = 0; i < slot_count; i++) {
        if (!slots[i])
            continue;
        uint64_t at = slots[i]->key & (count - 1);
        while (bigger[at])
            at = (at + 1) & (count - 1);
        bigger[at] = slots[i];
    }
    slots = bigger;
    slot_count = count;
    return 1;
}

static int is_site(const site *s, uint64_t key, const tn_site_frame *frames, uint32_t n)
{
    if (s->key != key || s->n != n)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (s->frames[i].identity != frames[i].identity || s->frames[i].offset != frames[i].offset)
            return 0;
    return 1;
}

static void write_site(tn_journal *journal, const site *s, const tn_site_frame *frames, uint32_t outer_api, uint32_t flags)
{
    tn_rec_site rec;
    struct tn_frame out[TN_FRAMES_MAX];
    memset(&rec, 0, sizeof rec);
    rec.id = s->id;
    rec.frame_count = s->n;
    rec.key = s->key;
    rec.outer_api = outer_api;
    rec.flags = flags;
    for (uint32_t i = 0; i < s->n; i++)
        out[i] = (struct tn_frame){ frames[i].record, 0, frames[i].offset };
    (void)tn_journal_record(journal, TN_REC_SITE, &rec, sizeof rec, out, s->n * sizeof out[0]);
}

uint32_t tn_site_intern(tn_journal *journal, uint64_t key, const tn_site_frame *frames, uint32_t n, uint32_t outer_api, uint32_t flags)
{
    /* Half full at most; where memory is short, on to one free slot, which the search below needs to end. */
    if (2 * (site_count + 1) > slot_count && !grow_sites() && site_count + 1 >= slot_count)
        return TN_SITE_NONE;
    uint64_t at = key & (slot_count - 1);
    for (; slots[at]; at = (at + 1) & (slot_count - 1))
        if (is_site(slots[at], key, frames, n))
            return slots[at]->id;
    if (site_count >= (uint64_t)tn_sites_max + (flags & TN_SF_TOO_MANY ? TN_CALLERS_MAX : 0))
        return TN_SITE_TOO_MANY;
    site *s = tn_pool_take(&pool, sizeof *s + n * sizeof s->frames[0]);
    if (!s)
        return TN_SITE_NONE;
    s->key = key;
    s->id = next_id++;
    s->n = n;
    for (uint32_t i = 0; i < n; i++) {
        s->frames[i].identity = frames[i].identity;
        s->frames[i].offset = frames[i].offset;
    }
    tn_site_key_note(s->id, key, 0);
    write_site(journal, s, frames, outer_api, flags);
    slots[at] = s;
    site_count++;
    return s->id;
}

uint32_t tn_site_new_id(void)
{
    tn_tables_lock();
    uint32_t id = next_id++;
    tn_tables_unlock();
    return id;
}
