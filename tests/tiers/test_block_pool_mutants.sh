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
mutant generation_not_raised_by_a_release $pool 's/^    hold->generation\+\+;$/    hold->generation += 0;/' test_block_pool_handles
mutant generation_not_compared $pool 's/hold->generation == owner->tn_block_generation_ && //' test_block_pool_handles
mutant block_of_the_hold_not_compared $pool 's/ && hold->block == owner->tn_block_id_\)/)/' test_block_pool_handles
mutant pool_not_compared $pool 's/if \(owner->tn_block_pool_ != pool->identity\)/if (false)/' test_block_pool_handles
mutant owner_not_emptied $pool 's/^        owner->tn_block_pool_ = 0;$/        ;/' test_block_pool_handles
mutant full_owner_overwritten $pool 's/owner == NULL \|\| owner->tn_block_pool_ != 0\)/owner == NULL)/' test_block_pool_handles
mutant share_counts_nothing $pool 's/\+\+pool->blocks\[block\]\.references == 2/pool->blocks[block].references == 2/' $model
mutant shares_not_bounded $pool 's/pool->stats\.shares == pool->options\.max_shares/false/' $model
mutant shared_where_none_may_be $pool 's/pool->options\.max_shares == 0\)/false)/' test_kv_cache
mutant marks_dropped $pool 's/for \(size_t i = 0; i < count; i\+\+\)/for (size_t i = 0; i < 0 * count; i++)/' test_block_pool_clean
mutant released_as_clean $pool 's/pool->sets == NULL \|\| tn_work_set_is_clean.*\)$/true)/' $model
mutant any_waiting_block_taken $pool 's/if \(tn_work_set_is_ready.*\) \{$/if (true) {/' $model
mutant old_marks_forgotten_by_an_acquire $pool 's/^            take_out_of_waiting\(pool, b, before\);$/            take_out_of_waiting(pool, b, before), pool->sets[b].count = 0;/' $model
mutant queue_broken_at_its_end $pool 's/pool->wait_last = before;/pool->wait_last = block;/' $model
mutant front_not_preferred $pool 's/if \(c < pool->open\)/if (pool->open == UINT32_MAX)/' $model
mutant waits_before_it_grows $pool 's/if \(pool->moving\) \{/if (pool->stats.waiting > 0) { error = TN_MEM_E_MUST_WAIT; } else if (pool->moving) {/' test_block_pool_grow
mutant reset_without_marks $pool 's/add_marks\(pool, pool->holds\[i\]\.block, marks, mark_count\);/;/' test_block_pool_handles
mutant failed_decommit_loses_the_chunks tiers/block_pool_grow.c 's/while \(pool->chunks_committed < there\)/while (false)/' test_block_pool_grow
mutant blocks_without_memory_after_a_failed_trim tiers/block_pool_grow.c 's/chunks_there\(pool, before\);/before;/' test_block_pool_grow
mutant blocks_without_memory_after_a_failed_destroy tiers/block_pool_create.c 's/tn_pool_close_lost\(p\);//' test_block_pool_grow
mutant live_chunk_given_back tiers/block_pool_grow.c 's/return pool->chunks\[chunk\]\.free == .*;/return true;/' test_block_pool_grow
mutant no_spare_kept tiers/block_pool_grow.c 's/ >= pool->options\.chunk_blocks;/ >= 0;/' test_block_pool_grow
mutant idle_steps_not_on_end tiers/block_pool_grow.c 's/pool->idle = idle \? pool->idle \+ 1 : 0;/pool->idle += idle;/' test_block_pool_grow
mutant size_not_checked tiers/block_pool_create.c 's/!tn_size_multiply\(o->blocks, o->stride, &bytes\)/((bytes = o->blocks * o->stride), false)/' test_block_pool
mutant destroyed_with_owners tiers/block_pool_create.c 's/if \(p->stats\.live > 0\)/if (false)/' test_block_pool
mutant later_mark_overwritten_by_an_earlier tiers/work_mark.c 's/if \(set->marks\[i\]\.sequence < mark\.sequence\)/if (true)/' test_work_mark
mutant full_set_forgets tiers/work_mark.c 's/set->marks\[0\] = work->table->all\(work->self\);/set->marks[0] = mark;/' $model
mutant told_after_it_is_free $pool 's/^            tell_taken_back\(pool, block\);$/            { drop_reference(pool, block); tell_taken_back(pool, block); pool->blocks[block].references++; pool->stats.live++; }/' test_block_pool_seam
mutant told_of_every_owner $pool 's/ && pool->blocks\[block\]\.references == 1\)/)/' test_block_pool_seam
# Ways to lose a reference, in the cache over the pool.
mutant cache_lives_by_omission tests/tiers/kv_prefix.c 's/ck_assert\(tn_block_move\(owner, &entry->owner\)\);/entry->owner = *owner;/' test_kv_cache
mutant pinned_entry_evicted tests/tiers/kv_prefix.c 's/if \(kv->entries\[i\]\.pins == 0\)/if (true)/' test_kv_cache
mutant failed_load_keeps_its_blocks tests/tiers/kv_prefix.c 's/^        else if \(error == TN_MEM_OK\)/        else if (true)/' test_kv_faults
mutant rollback_forgets_a_block tests/tiers/kv_cache.c 's/size_t i = first; i < s->blocks; i\+\+/size_t i = first; i + 1 < s->blocks; i++/' test_kv_faults

finish
