#!/usr/bin/env bash
# The tests of arenas, fixed blocks, stable slots, handles, look-ups and the book find planted bugs: each mutant is a file with one line changed,
# and the named test fails with it.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
# shellcheck source=tests/tiers/mutants.sh
. tests/tiers/mutants.sh

begin test_arena test_arena_listed test_arena_used test_find test_fixed test_handle_pool test_region_book test_seam_hand_outs \
  test_stable_slots -- fixture tick_device

mutant open_region_popped tiers/arena_regions.c 's/live_blocks != 0 \|\| !l->pending/live_blocks != 0 \&\& !l->pending/' test_arena_listed
mutant failed_reset_forgotten tiers/arena_regions.c 's/^        l->pending = true;$/        ;/' test_arena
mutant used_bytes_taken_back tiers/arena_regions.c 's/l->uncovered\.count > 0 && !tn_work_set_is_clean\(.*\)\)$/false)/' test_arena_used
mutant kept_region_begun_anew_in_use tiers/arena_regions.c 's/ \|\| !tn_work_set_is_clean\(&l->uncovered, &arena->work\);/;/' test_arena_used
mutant exact_size_not_preferred tiers/arena_regions.c 's/if \(list\[low\]\.first_bytes == bytes\)/if (false)/' test_arena_listed
mutant smallest_listed_taken tiers/arena_regions.c 's/list\[low\]\.capacity > largest->capacity/list[low].capacity < largest->capacity/' test_arena_listed
mutant spill_is_no_take tiers/arena.c 's/^        open->takes\+\+;$/        open->takes += place(open, bytes, alignment, \&(size_t){0});/' test_arena_listed
mutant padding_is_the_blocks tiers/arena.c 's/offset - b->offset >= b->bytes/b->bytes == 0/' test_arena_listed
mutant packed_padding_is_the_blocks tiers/packed.c 's/ \|\| offset - p->slots\[owner - 1\]\.offset >= asked\)/)/' test_find
mutant freed_packed_block_found tiers/packed.c 's/status_of\(seen\) == LIVE; seen = again/true; seen = again/; s/if \(status_of\(again\) == LIVE && /if (/' test_find
mutant scratch_tombstone_found tiers/scratch.c 's/offset - b->offset >= b->bytes\)/offset >= b->end)/' test_find
mutant second_free_of_an_address tiers/fixed.c 's/__atomic_exchange_n\(&r->asked, 0, __ATOMIC_ACQ_REL\) == 0/__atomic_load_n(\&r->asked, __ATOMIC_ACQUIRE) == 0/' test_fixed
mutant inside_of_a_block_freed tiers/fixed.c 's/ \|\| offset % fixed->stride != 0\)/)/' test_fixed
mutant work_forgotten_by_a_free tiers/fixed.c 's/mark_count > 0 \? uncovered->marks : NULL, mark_count\)/NULL, 0)/' test_fixed
mutant place_of_a_failed_handle_lost tiers/handle_pool.c 's/^            put_empty\(pool, at\);$/            ;/' test_handle_pool
mutant slot_to_be_had_while_its_end_is_told tiers/stable_slots.c 's/at->status = RETURNING;/at->status = TAKEN;/' test_seam_hand_outs
mutant second_taken_slot_not_seen tiers/stable_slots.c 's/i < \(\*slots\)->slot_count; i\+\+/i < 1; i++/' test_stable_slots
mutant told_after_the_memory_went tiers/packed.c 's/^    TN_SEAM\(taken_back_all, \*packed\);.*$//' test_seam_hand_outs
mutant book_looks_back tiers/region_book.c 's/i < book->count && !found; i\+\+/i < book->count \&\& !found; i--/' test_region_book

finish
