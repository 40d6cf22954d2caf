#!/usr/bin/env bash
# Forbidden conversions must not compile, with no warning flag given, and each for the stated reason: its permitted twin, the same lines
# but for the conversion, compiles. In C by gcc and clang, in C++ by g++; a compiler that is not there is skipped by name.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# compiles COMPILER LANGUAGE BODY: the errors go to $work/errors.
compiles() {
  printf '#include <string.h>\n#include "tiers/tenure_tiers.h"\nvoid launch(tn_stable_span kv);\nvoid copy(tn_device_span from);\n%s\n' \
    "$3" >"$work/case.$2"
  local standard=-std=c17
  [ "$2" = c ] || standard=-std=c++17
  "$1" "$standard" -I. -c "$work/case.$2" -o "$work/case.o" 2>"$work/errors"
}

# forbid NAME COMPILER LANGUAGE ERROR GOOD BAD: BAD fails with an error that matches ERROR, GOOD compiles.
forbid() {
  local name=$1_$2 error=$4
  if ! command -v "$2" >/dev/null; then
    echo "skip $name: no $2"
  elif ! compiles "$2" "$3" "$5"; then
    echo "not ok $name: the permitted twin does not compile"
    cat "$work/errors"
    bad=1
  elif compiles "$2" "$3" "$6"; then
    echo "not ok $name: it compiles"
    bad=1
  elif ! grep -E "error: .*($error)" "$work/errors" >/dev/null; then
    echo "not ok $name: it fails for another reason"
    cat "$work/errors"
    bad=1
  else
    echo "ok $name"
  fi
}

all() {
  local name=$1 good=$2 bad_body=$3
  forbid "$name" gcc c "$4" "$good" "$bad_body"
  forbid "$name" clang c "$5" "$good" "$bad_body"
  forbid "$name" g++ cc "$6" "$good" "$bad_body"
}

stable='tn_stable_span s'
all device_span_passed_as_stable \
  "void f($stable) { launch(s); }" \
  'void f(tn_device_span s) { launch(s); }' \
  'incompatible type' 'incompatible type' 'could not convert'
all device_span_assigned_to_stable \
  "void f($stable) { tn_stable_span t; t = s; launch(t); }" \
  'void f(tn_device_span s) { tn_stable_span t; t = s; launch(t); }' \
  'incompatible type' 'incompatible type' 'no match for'
all device_span_cast_to_stable \
  "void f($stable) { launch((tn_stable_span)s); }" \
  'void f(tn_device_span s) { launch((tn_stable_span)s); }' \
  'conversion to non-scalar' 'arithmetic or pointer type is required' 'no matching function'
all device_span_returned_as_stable \
  "tn_stable_span f($stable) { return s; }" \
  'tn_stable_span f(tn_device_span s) { return s; }' \
  'incompatible type' 'incompatible result type' 'could not convert'
all raw_pointer_passed_as_stable \
  "void f($stable) { launch(s); }" \
  'void f(void *s) { launch(s); }' \
  'incompatible type' 'incompatible type' 'could not convert'
all integer_passed_as_stable \
  "void f($stable) { launch(s); }" \
  'void f(size_t s) { launch(s); }' \
  'incompatible type' 'incompatible type' 'could not convert'
all stable_made_by_position \
  'void f(void *p) { tn_device_span s = {p, 8}; copy(s); }' \
  'void f(void *p) { tn_stable_span s = {(uintptr_t)p, 8}; launch(s); }' \
  'designated_init' 'unavailable' 'could not convert|no matching|private'
all stable_made_by_name \
  'void f(void *p) { tn_device_span s = {.data = p}; copy(s); }' \
  'void f(void *p) { tn_stable_span s = {.tn_stable_address_ = (uintptr_t)p}; launch(s); }' \
  'poisoned' 'poisoned' 'poisoned'
all stable_moved_elsewhere \
  'void f(tn_device_span s, char *p) { s.data = p; copy(s); }' \
  'void f(tn_stable_span s, char *p) { s.tn_stable_address_ = (uintptr_t)p; launch(s); }' \
  'poisoned' 'poisoned' 'poisoned'
all stable_not_taken_for_a_device_span_unsaid \
  "void f($stable) { copy(tn_stable_widen(s)); }" \
  "void f($stable) { copy(s); }" \
  'incompatible type' 'incompatible type' 'could not convert'

block='tn_block_pool *pool, tn_block *b'
all block_released_by_its_number \
  "tn_mem_error f($block) { return tn_block_pool_release(pool, b, 0, 0); }" \
  "tn_mem_error f($block) { uint32_t id = tn_block_id(b); return tn_block_pool_release(pool, (tn_block)id, 0, 0); }" \
  'conversion to non-scalar' 'arithmetic or pointer type is required' 'no matching function'
all block_handed_over_by_value \
  "tn_mem_error f($block) { return tn_block_pool_release(pool, b, 0, 0); }" \
  "tn_mem_error f($block) { return tn_block_pool_release(pool, *b, 0, 0); }" \
  'incompatible type' 'incompatible type' 'cannot convert'
all block_made_by_position \
  "tn_mem_error f($block) { (void)b; return tn_block_pool_release(pool, 0, 0, 0); }" \
  "tn_mem_error f($block) { (void)b; tn_block c = {1, 2, 3, 4}; return tn_block_pool_release(pool, &c, 0, 0); }" \
  'designated_init' 'unavailable' 'could not convert|no matching|private'
all block_made_by_name \
  "tn_mem_error f($block) { (void)b; return tn_block_pool_release(pool, 0, 0, 0); }" \
  "tn_mem_error f($block) { (void)b; tn_block c = {.tn_block_id_ = 1}; return tn_block_pool_release(pool, &c, 0, 0); }" \
  'poisoned' 'poisoned' 'poisoned'
all block_turned_into_another \
  "bool f($block) { (void)pool; return tn_block_is_empty(b); }" \
  "bool f($block) { (void)pool; b->tn_block_id_ = 1; return tn_block_is_empty(b); }" \
  'poisoned' 'poisoned' 'poisoned'
all block_taken_for_a_stable_span \
  "void f($block) { tn_stable_span s; if (tn_block_pool_span(pool, b, &s) == TN_MEM_OK) launch(s); }" \
  "void f($block) { (void)pool; launch(*b); }" \
  'incompatible type' 'incompatible type' 'could not convert'
forbid block_copied_in_cxx g++ cc 'use of deleted' \
  "void f(tn_block *b) { tn_block c(static_cast<tn_block &&>(*b)); (void)tn_block_is_empty(&c); }" \
  "void f(tn_block *b) { tn_block c(*b); (void)tn_block_is_empty(&c); }"
forbid block_assigned_in_cxx g++ cc 'use of deleted' \
  "void f(tn_block *b, tn_block *c) { (void)tn_block_move(b, c); }" \
  "void f(tn_block *b, tn_block *c) { *c = *b; }"
all packed_region_passed_as_stable \
  'void f(tn_packed *p) { copy(tn_packed_region(p)); }' \
  'void f(tn_packed *p) { launch(tn_packed_region(p)); }' \
  'incompatible type' 'incompatible type' 'could not convert'
all number_passed_as_a_scratch_mark \
  'tn_mem_error f(tn_scratch *s, tn_scratch_mark m) { return tn_scratch_rewind(s, m); }' \
  'tn_mem_error f(tn_scratch *s, size_t m) { return tn_scratch_rewind(s, m); }' \
  'incompatible type' 'incompatible type' 'could not convert'
all stable_slot_read_from_a_raw_pointer \
  'void f(tn_stable_slots *s, tn_stable_span k) { (void)!tn_stable_slots_take(s, 1, 8, 0, 0, &k); launch(k); }' \
  'void f(tn_stable_slots *s, tn_stable_span k) { (void)!tn_stable_slots_take(s, 1, 8, 0, 0, &k); launch(tn_stable_data(k)); }' \
  'incompatible type' 'incompatible type' 'could not convert'

exit $bad
