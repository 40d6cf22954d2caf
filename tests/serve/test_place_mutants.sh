#!/usr/bin/env bash
# The tests of a place find planted bugs: each mutant is it with one line changed, and the named test fails with it.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
sources="tiers/*.c serve/place*.c planner/discipline.c planner/plan_check.c planner/plan_find.c planner/plan_memory.c
  tests/tiers/fixture.c tests/tiers/tick_device.c"
folder=tests/serve
# shellcheck source=tests/tiers/mutants.sh
. tests/tiers/mutants.sh

begin test_place_bump test_place_create test_place_model test_place_slots -- place_fixture

whole=serve/place.c
mutant loading_memory_counted $whole 's/if \(s->tiers\[i\]\.discipline != TN_D_T5A && [^)]*\) //' test_place_create
mutant stacks_counted_once $whole 's/\.discipline == TN_D_T4 \? s->tiers\[i\]\.streams : 1/.discipline == TN_D_T4 ? 1 : 1/' test_place_create
mutant flags_dropped $whole 's/TN_FAMILY_PINNED \? r->detail : 0/TN_FAMILY_PINNED ? 0 : 0/' test_place_create
mutant forgotten_slots_released $whole 's/tn_place_slots_destroy\(p, family, flags, forget\)/tn_place_slots_destroy(p, family, flags, 0)/' test_place_create

slots=serve/place_slots.c
mutant fixed_blocks_among_the_packed $slots 's/= packed_capacity\(s, family, flags\);/= 0 * packed_capacity(s, family, flags);/' test_place_slots
mutant fixed_blocks_not_aligned $slots 's/\*end = tn_round_up\(\*end, alignment\);//' test_place_slots
mutant wait_not_counted $slots 's/out->waits\+\+;//' test_place_slots
mutant waits_though_it_may_not $slots 's/ && may_wait && / \&\& /' test_place_slots
mutant waits_for_all_there_is $slots 's/if \(set\.count == 0\) return/return/' test_place_slots
mutant stream_dropped $slots 's/bytes, stream, &span/bytes, 0, \&span/' test_place_slots
mutant in_its_own_way_by_another_name $slots 's/why->slot_site == why->site \? TN_PLACE_TOO_MANY : //' test_place_slots
mutant no_slots_not_looked_for $slots 's/if \(!slots->packed\)/if (0)/' test_place_slots
mutant async_slots_kept $slots 's/= forget && family != TN_FAMILY_ASYNC/= forget/' test_place_create

bump=serve/place_bump.c
mutant arena_not_aligned $bump 's/\.region_alignment = [^,]*, t->capacity\),//' test_place_bump
mutant arena_not_opened $bump 's/\(error = tn_arena_open_region\(b->arena, 0\)\) != TN_MEM_OK/0/' test_place_create
mutant nothing_taken_back_in_time $bump 's/if \(b->count\) take_back\(.*AT_ONCE\);//' test_place_bump
mutant not_all_looked_at $bump 's/if \(error != TN_MEM_OK && b->count > 0\)/if (0)/' test_place_bump
mutant taken_back_while_in_use $bump 's/if \(!tn_work_set_is_ready\(.*\)\) b->waiting/if (0) b->waiting/' test_place_bump
mutant freed_while_in_use $bump 's/if \(tn_work_set_is_ready\(.*\)\) return free_now/if (1) return free_now/' test_place_bump
mutant free_not_looked_at $bump 's/if \(error != TN_MEM_OK \|\| begin != address\)/if (0)/' test_place_bump
mutant free_claims_a_stack $bump 's/stack_of\(p, stream, 0\)/stack_of(p, stream, 1)/' test_place_bump
mutant full_wait_not_looked_through $bump 's/if \(b->count == TN_PLACE_WAITING\) .*//' test_place_bump
mutant engine_blocks_not_aligned $bump 's/\? tn_native_alignment\(row->family, bytes\) : 512/? 512 : 512/' test_place_bump

model=serve/place_model.c
mutant phase_does_not_close $model 's/if \(m->phase != phase\) m->left = 0;//' test_place_model
mutant free_does_not_close $model 's/m->left = 0; (.. what comes)/\1/' test_place_model
mutant requests_not_counted $model 's/^    m->left--;//' test_place_model
mutant size_not_looked_for $model 's/if \(r->first_bytes == bytes\) return r;//' test_place_model
mutant smallest_of_the_site $model 's/r->capacity > best->capacity/r->capacity < best->capacity/' test_place_model
mutant used_as_given $model 's/at > r->capacity \|\| whole > r->capacity - at/at > r->memory.committed || whole > r->memory.committed - at/' test_place_model
mutant others_region_not_seen $model 's/^    if \(is_open\(m, phase\)\) \{/    if (0) {/' test_place_model
mutant pinned_region_goes $model 's/r->live == 0 && !p->options.pin_regions/r->live == 0/' test_place_model
mutant pinned_region_used_while_in_use $model 's/int clean = tn_work_set_is_clean\(.*\);/int clean = 1;/' test_place_model
mutant uncovered_not_kept $model 's/if \(p->options.pin_regions && uncovered\) .*//' test_place_model
mutant waits_though_it_may_not_for_a_region $model 's/!clean && may_wait/!clean/' test_place_model
mutant largest_region_used_again $model 's/r->room < m->regions\[best\]\.room/r->room > m->regions[best].room/' test_place_model
mutant region_used_again_is_as_large_as_it_was $model 's/r\.capacity = planned->capacity;//' test_place_model
mutant what_stays_has_no_bound $model 's/int full = .*;/int full = 0;/' test_place_model
mutant nothing_gives_way $model 's/if \(error == TN_MEM_OK \|\| !p->options.pin_regions\) return error;/return error;/' test_place_model
mutant refused_release_forgotten $model 's/(int released = tn_backend_release\(.*\)) == TN_MEM_OK/\1 >= 0/' test_place_model

finish
