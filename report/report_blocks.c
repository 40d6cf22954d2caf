/* Live blocks of the replay: an array with a free list, and a hash index over it. */
#include "report/report_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "report/report_big.h"

void tn_blocks_free(tn_blocks *table)
{
    free(table->blocks);
    free(table->slots);
    memset(table, 0, sizeof(*table));
}

static size_t slot_of(const tn_blocks *table, uint32_t process, uint8_t space, uint64_t addr)
{
    /* Block addresses are multiples of 512 and more: the multiplication brings their high bits down. */
    uint64_t h = (addr ^ (uint64_t)process << 48 ^ (uint64_t)space << 40) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 24 ^ h >> 48) & table->mask;
}

static tn_error grow_index(tn_blocks *table)
{
    size_t size = table->slots ? (table->mask + 1) * 2 : 4096;
    uint32_t *slots = tn_big_alloc(size * sizeof(*slots));
    if (!slots)
        return TN_E_NOMEM;
    memset(slots, 0xff, size * sizeof(*slots));
    free(table->slots);
    table->slots = slots;
    table->mask = size - 1;
    for (uint32_t i = 0; i < table->count; i++) {
        const tn_block *b = &table->blocks[i];
        if (!b->used || !b->indexed)
            continue;
        size_t at = slot_of(table, b->process, b->space, b->addr);
        while (slots[at] != TN_BLOCK_NONE)
            at = (at + 1) & table->mask;
        slots[at] = i;
    }
    return TN_OK;
}

static tn_error take_element(tn_blocks *table, uint32_t *out)
{
    if (table->count > 0 && table->free_head != TN_BLOCK_NONE) {
        *out = table->free_head;
        table->free_head = (uint32_t)table->blocks[*out].addr;
        return TN_OK;
    }
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity ? table->capacity * 2 : 1024;
        tn_block *grown = tn_big_grow(table->blocks, table->count * sizeof(*grown), capacity * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        table->blocks = grown;
        table->capacity = capacity;
    }
    if (table->count == 0)
        table->free_head = TN_BLOCK_NONE;
    *out = table->count++;
    return TN_OK;
}

static void enter(tn_blocks *table, uint32_t index)
{
    tn_block *b = &table->blocks[index];
    size_t at = slot_of(table, b->process, b->space, b->addr);
    while (table->slots[at] != TN_BLOCK_NONE)
        at = (at + 1) & table->mask;
    table->slots[at] = index;
    table->indexed++;
    b->indexed = 1;
}

tn_error tn_blocks_add(tn_blocks *table, const tn_block *block, uint32_t *out)
{
    if (!table->slots || table->indexed * 2 > table->mask) {
        tn_error error = grow_index(table);
        if (error != TN_OK)
            return error;
    }
    tn_error error = take_element(table, out);
    if (error != TN_OK)
        return error;
    tn_block *b = &table->blocks[*out];
    *b = *block;
    b->used = 1;
    enter(table, *out);
    return TN_OK;
}

tn_error tn_blocks_reindex(tn_blocks *table, uint32_t index, uint64_t addr)
{
    if (table->indexed * 2 > table->mask) {
        tn_error error = grow_index(table);
        if (error != TN_OK)
            return error;
    }
    table->blocks[index].addr = addr;
    enter(table, index);
    return TN_OK;
}

uint32_t tn_blocks_find(const tn_blocks *table, uint32_t process, uint8_t space, uint64_t addr)
{
    if (!table->slots)
        return TN_BLOCK_NONE;
    size_t at = slot_of(table, process, space, addr);
    while (table->slots[at] != TN_BLOCK_NONE) {
        const tn_block *b = &table->blocks[table->slots[at]];
        if (b->addr == addr && b->process == process && b->space == space)
            break;
        at = (at + 1) & table->mask;
    }
    return table->slots[at];
}

const uint32_t *tn_blocks_slot(const tn_blocks *table, uint32_t process, uint8_t space, uint64_t addr)
{
    return table->slots ? &table->slots[slot_of(table, process, space, addr)] : NULL;
}

void tn_blocks_unindex(tn_blocks *table, uint32_t index)
{
    tn_block *b = &table->blocks[index];
    if (!b->indexed)
        return;
    b->indexed = 0;
    table->indexed--;
    size_t hole = slot_of(table, b->process, b->space, b->addr);
    while (table->slots[hole] != index)
        hole = (hole + 1) & table->mask;
    /* Backward shift instead of tombstones: millions of blocks come and go in one replay. */
    for (size_t at = (hole + 1) & table->mask; table->slots[at] != TN_BLOCK_NONE; at = (at + 1) & table->mask) {
        const tn_block *moved = &table->blocks[table->slots[at]];
        size_t home = slot_of(table, moved->process, moved->space, moved->addr);
        if (((at - home) & table->mask) >= ((at - hole) & table->mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole] = TN_BLOCK_NONE;
}

void tn_blocks_remove(tn_blocks *table, uint32_t index)
{
    tn_blocks_unindex(table, index);
    tn_block *b = &table->blocks[index];
    b->used = 0;
    b->addr = table->free_head; /* the free list runs through the elements */
    table->free_head = index;
}
