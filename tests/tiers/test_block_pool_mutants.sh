#!/usr/bin/env bash
# The tests of the block pool find planted bugs: each mutant is the pool, or the KV cache over it, with one line changed, and the named test
# fails with it.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
# shellcheck source=tests/tiers/mutants.sh
. tests/tiers/mutants.sh

begin test_block_pool test_block_pool_clean test_block_pool_grow test_block_pool_handles test_block_pool_model test_block_pool_seam \
  test_kv_cache test_kv_faults test_work_mark -- fixture kv_cache kv_prefix pool_fixture work_device

pool=tiers/block_pool.c
model=test_block_pool_model
mutant generation_kept_by_a_release $pool 's/^    block->generation = TN_POOL_NOT_GIVEN;$/    ;/' test_block_pool_handles
mutant generation_kept_by_a_rare_release $pool 's/^        pool->blocks\[block\]\.generation = TN_POOL_NOT_GIVEN;$/        ;/' test_block_pool_clean
mutant generation_kept_by_a_share $pool 's/^    hold->generation = TN_POOL_NOT_GIVEN;$/    ;/' test_block_pool_handles
mutant generation_given_twice $pool 's/^    pool->generations\+\+;$/    ;/' test_block_pool_handles
mutant generation_not_compared $pool 's/block->generation != generation \|\| //' test_block_pool_handles
mutant generation_of_a_rare_release_not_compared $pool 's/return pool->blocks\[b\]\.generation == generation;/return true;/' test_block_pool_handles
mutant generation_of_a_share_not_compared $pool 's/hold->generation == generation && //' test_block_pool_handles
mutant nobody_is_an_owner $pool 's/ \|\| generation == TN_POOL_NOT_GIVEN\)/)/; s/owner->tn_block_generation_ != TN_POOL_NOT_GIVEN && //' test_block_pool_handles
mutant block_of_the_hold_not_compared $pool 's/ && hold->block == b;/;/' test_block_pool_handles
mutant pool_not_compared $pool 's/owner->tn_block_pool_ == pool->identity && //' test_block_pool_handles
mutant pool_of_a_rare_owner_not_compared $pool 's/if \(__builtin_expect\(owner->tn_block_pool_ != pool->identity, 0\)\)/if (false)/' test_block_pool_handles
mutant owner_not_emptied $pool 's/^    owner->tn_block_pool_ = 0;$/    ;/' test_block_pool_handles
mutant owner_of_a_rare_release_not_emptied $pool 's/^        owner->tn_block_pool_ = 0;$/        ;/' test_block_pool_clean
mutant full_owner_overwritten $pool 's/owner == NULL \|\| owner->tn_block_pool_ != 0\)/owner == NULL)/' test_block_pool_handles
mutant share_counts_nothing $pool 's/\+\+pool->blocks\[block\]\.others == 1/pool->blocks[block].others == 1/' $model
mutant shared_block_freed $pool 's/ \|\| block->others != 0 / /' $model
mutant waiting_block_freed $pool 's/ \|\| \(pool->sets != NULL && pool->sets\[b\]\.count != 0\)//' $model
mutant holds_for_shares_alone tiers/block_pool_create.c 's/0 : o->blocks \+ o->max_shares;/0 : o->max_shares;/' test_block_pool_handles
mutant shares_not_bounded $pool 's/pool->stats\.shares == pool->options\.max_shares/false/' $model
mutant shared_where_none_may_be $pool 's/pool->options\.max_shares == 0\)/false)/' test_kv_cache
mutant marks_dropped $pool 's/for \(size_t i = 0; i < count; i\+\+\)/for (size_t i = 0; i < 0 * count; i++)/' test_block_pool_clean
mutant released_as_clean $pool 's/pool->sets == NULL \|\| tn_work_set_is_clean.*\)$/true)/' $model
mutant any_waiting_block_taken tiers/block_pool_wait.c 's/if \(tn_work_set_is_ready.*\) \{$/if (true) {/' $model
mutant old_marks_forgotten_by_an_acquire tiers/block_pool_wait.c 's/^            take_out_of_waiting\(pool, b, before\);$/            take_out_of_waiting(pool, b, before), pool->sets[b].count = 0;/' $model
mutant queue_broken_at_its_end tiers/block_pool_wait.c 's/pool->wait_last = before;/pool->wait_last = block;/' $model
mutant front_not_preferred $pool 's/if \(c < pool->open\)/if (pool->open == UINT32_MAX)/' $model
mutant waits_before_it_grows $pool 's/if \(pool->moving\) \{/if (pool->stats.waiting > 0) { error = TN_MEM_E_MUST_WAIT; } else if (pool->moving) {/' test_block_pool_grow
mutant reset_without_marks $pool 's/give_up\(pool, b, TN_POOL_OWN, marks, mark_count, false\)/give_up(pool, b, TN_POOL_OWN, NULL, 0, false)/' test_block_pool_handles
mutant reset_of_a_share_without_marks $pool 's/h, marks, mark_count, false\)/h, NULL, 0, false)/' test_block_pool_handles
mutant failed_decommit_loses_the_chunks tiers/block_pool_grow.c 's/while \(pool->chunks_committed < there\)/while (false)/' test_block_pool_grow
mutant blocks_without_memory_after_a_failed_trim tiers/block_pool_grow.c 's/chunks_there\(pool, before\);/before;/' test_block_pool_grow
mutant blocks_without_memory_after_a_failed_destroy tiers/block_pool_create.c 's/tn_pool_close_lost\(p\);//' test_block_pool_grow
mutant live_chunk_given_back tiers/block_pool_grow.c 's/return pool->chunks\[chunk\]\.free == .*;/return true;/' test_block_pool_grow
mutant no_spare_kept tiers/block_pool_grow.c 's/ >= pool->options\.chunk_blocks;/ >= 0;/' test_block_pool_grow
mutant idle_steps_not_on_end tiers/block_pool_grow.c 's/pool->idle = idle \? pool->idle \+ 1 : 0;/pool->idle += idle;/' test_block_pool_grow
mutant size_not_checked tiers/block_pool_create.c 's/!tn_size_multiply\(o->blocks, o->stride, &bytes\)/((bytes = o->blocks * o->stride), false)/' test_block_pool
mutant destroyed_with_owners tiers/block_pool_create.c 's/if \(p->live > 0\)/if (false)/' test_block_pool
mutant beyond_the_last_chunk tiers/block_pool_create.c 's/reserve_part\(&total, chunk_count \+ 1,/reserve_part(\&total, chunk_count,/; s/c <= pool->chunk_count/c < pool->chunk_count/' test_block_pool
mutant later_mark_overwritten_by_an_earlier tiers/work_mark.c 's/if \(set->marks\[i\]\.sequence < mark\.sequence\)/if (true)/' test_work_mark
mutant full_set_forgets tiers/work_mark.c 's/set->marks\[0\] = work->table->all\(work->self\);/set->marks[0] = mark;/' $model
mutant told_after_it_is_free $pool 's/^        tell_taken_back\(pool, block\);$/        { drop_reference(pool, block); tell_taken_back(pool, block); return; }/' test_block_pool_seam
mutant told_of_every_owner $pool 's/listened && pool->blocks\[block\]\.others == 0/listened/' test_block_pool_seam
mutant nobody_told_of_an_acquire $pool 's/^    if \(__builtin_expect\(is_listened_to\(pool\), 0\)\)$/    if (false)/' test_block_pool_seam
mutant nobody_told_of_a_release $pool 's/ && !is_listened_to\(pool\);$/;/' test_block_pool_seam
# Ways to lose a reference, in the cache over the pool.
mutant cache_lives_by_omission tests/tiers/kv_prefix.c 's/ck_assert\(tn_block_move\(owner, &entry->owner\)\);/entry->owner = *owner;/' test_kv_cache
mutant pinned_entry_evicted tests/tiers/kv_prefix.c 's/if \(kv->entries\[i\]\.pins == 0\)/if (true)/' test_kv_cache
mutant failed_load_keeps_its_blocks tests/tiers/kv_prefix.c 's/^        else if \(error == TN_MEM_OK\)/        else if (true)/' test_kv_faults
mutant rollback_forgets_a_block tests/tiers/kv_cache.c 's/size_t i = first; i < s->blocks; i\+\+/size_t i = first; i + 1 < s->blocks; i++/' test_kv_faults

finish
