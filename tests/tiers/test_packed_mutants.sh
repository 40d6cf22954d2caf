#!/usr/bin/env bash
# The tests of the packed slots find planted bugs: each mutant is the allocator with one line changed, and the named test fails with it.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
# shellcheck source=tests/tiers/mutants.sh
. tests/tiers/mutants.sh

begin test_packed test_packed_model test_packed_index -- fixture tick_device

take=tiers/packed_take.c
model=test_packed_model
mutant clean_check_skipped $take 's/^    if \(set->count == 0\)$/    if (true)/' $model
mutant behind_blocked_whatever_the_sequence $take 's/ && set->marks\[i\]\.sequence >= a->blocked\.sequence//' test_packed
mutant blocked_kept_for_the_next_take $take 's/^    a->blocked\.queue = TN_WORK_NO_QUEUE;$//; s/^    attempt a;$/    static attempt a;/' test_packed
mutant live_slot_not_in_the_way $take 's/if \(\*was == LIVE\)/if (false)/' $model
mutant work_not_inherited $take 's/result == TAKEN && other->set.count > 0/false/' $model
mutant hold_ignored $take 's/holds_of\(seen\)\)$/false)/' $model
mutant neighbours_not_looked_at $take 's/\*at = \*was == FREED \? .* : next;/*at = a->packed->slot_count > 0 ? UINT32_MAX : next;/' $model
mutant restored_as_free $take 's/give_back\(other, result == TAKEN \? FREE : other->was\)/give_back(other, FREE)/' $model
mutant uncovered_work_dropped tiers/packed.c 's/if \(uncovered != NULL\)/if (false)/' $model
mutant freed_ordinal_not_looked_for_first tiers/packed.c 's/if \(ordinal < .*lowest.*\)$/if (false)/' $model
mutant block_not_written_out tiers/packed_cells.c 's/set_owner\(&cells->owners\[cell\], whole\)/set_owner(\&cells->owners[cell], slot + 1)/' test_packed_model
mutant region_not_aligned tiers/packed.c 's/return most;/return 1;/' test_packed

index=tiers/packed_index.c
mutant free_not_told tiers/packed.c 's/^    if \(index != NULL && /    if (false \&\& /' test_packed_index
mutant latest_mark_of_a_group $index 's/group->sequences\[place\] <= sequence/group->sequences[place] >= sequence/' test_packed_index
mutant groups_not_told $index 's/^    tell_up\(index, 0, .*$//' test_packed_index
mutant order_of_queues_not_asked $index 's/ \|\| !table->ordered\(.*\)\);$/ || true);/' test_packed_index
mutant hold_ends_with_the_life $take 's/ \|\| \(status_of\(state\) == FREED && holds_of\(state\) > 0\)/ || status_of(state) == FREED/' test_packed_index
mutant index_never_searched $take 's/tn_packed_index \*index = class->index;/tn_packed_index *index = NULL;/' test_packed_index
mutant nothing_said_anew $index 's/^    tighten\(s->index, .*$//' test_packed_index

finish
