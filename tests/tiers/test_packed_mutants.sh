#!/usr/bin/env bash
# The tests of the packed slots find planted bugs: each mutant is the allocator with one line changed, and the named test fails with it.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
compiler=gcc
command -v $compiler >/dev/null || { echo "skip packed_mutants: no $compiler"; exit 0; }

compile() { $compiler -std=c17 -O1 -w -I. -c "$1" -o "$2"; }

for file in tiers/*.c tests/tiers/{fixture,tick_device,test_packed,test_packed_model}.c; do
  compile "$file" "$work/$(basename "$file" .c).o" || { echo "not ok packed_mutants: $file does not compile"; exit 1; }
done

# passes TEST: the test with the objects that are there now.
passes() {
  local objects=() one
  for one in "$work"/*.o; do
    case $one in */test_*) ;; *) objects+=("$one") ;; esac
  done
  $compiler "${objects[@]}" "$work/$1.o" -o "$work/program" -lcheck -lsubunit -lm -lrt -lpthread || return 2
  "$work/program" >"$work/output" 2>&1
}

# mutant NAME FILE SED TEST
mutant() {
  local name=$1 file=$2 object
  object=$work/$(basename "$file" .c).o
  sed -E "$3" "$file" >"$work/mutant.c"
  cp "$object" "$work/kept"
  if cmp -s "$file" "$work/mutant.c"; then
    echo "not ok $name: there is no such line any more"
    bad=1
  elif ! compile "$work/mutant.c" "$object"; then
    echo "not ok $name: it does not compile"
    bad=1
  else
    passes "$4"
    case $? in
      0) echo "not ok $name: $4 does not see it"; bad=1 ;;
      1) echo "ok $name" ;;
      *) echo "not ok $name: it ended otherwise"; bad=1 ;;
    esac
  fi
  cp "$work/kept" "$object"
}

for test in test_packed test_packed_model; do
  if passes $test; then
    echo "ok ${test}_as_it_is"
  else
    echo "not ok ${test}_as_it_is"
    cat "$work/output"
    bad=1
  fi
done

take=tiers/packed_take.c
model=test_packed_model
mutant clean_check_skipped $take 's/if \(set->count == 0 \|\| .*\)$/if (true)/' $model
mutant live_slot_not_in_the_way $take 's/if \(\*was == LIVE\)/if (false)/' $model
mutant work_not_inherited $take 's/result == TAKEN && other->set.count > 0/false/' $model
mutant hold_ignored $take 's/holds_of\(seen\)\)$/false)/' $model
mutant neighbours_not_looked_at $take 's/\*at = \*was == FREED \? .* : next;/*at = a->packed->slot_count > 0 ? UINT32_MAX : next;/' $model
mutant restored_as_free $take 's/give_back\(other, result == TAKEN \? FREE : other->was\)/give_back(other, FREE)/' $model
mutant uncovered_work_dropped tiers/packed.c 's/if \(uncovered != NULL\)/if (false)/' $model
mutant freed_ordinal_not_looked_for_first tiers/packed.c 's/if \(ordinal < .*lowest.*\)$/if (false)/' $model
mutant block_not_written_out tiers/packed_cells.c 's/set_owner\(&cells->owners\[cell\], whole\)/set_owner(\&cells->owners[cell], slot + 1)/' test_packed_model
mutant region_not_aligned tiers/packed.c 's/return most;/return 1;/' test_packed

exit $bad
