#!/usr/bin/env bash
# Runs this folder's programs bare and recorded on the fake card: same output, same exit, and a journal that holds what they
# did. The arguments are the files: libraries, `tenure`, programs.
set -u
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/hooks-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
failed=0 tenure='' checker='' poll_checker='' launch_checker='' end_checker='' copy_checker='' short_way_checker='' programs=()
for file in "$@"; do
  case $file in
  *.so | *.so.*) cp -L "$file" "$work/lib/" ;;
  */tenure) tenure=$(realpath "$file") ;;
  */check_journal) checker=$(realpath "$file") ;;
  */check_copies) copy_checker=$(realpath "$file") ;;
  */check_ended) end_checker=$(realpath "$file") ;;
  */check_launches) launch_checker=$(realpath "$file") ;;
  */check_short_way) short_way_checker=$(realpath "$file") ;;
  */check_poll) poll_checker=$(realpath "$file") ;;
  *) programs+=("$(realpath "$file")") ;;
  esac
done
export LD_LIBRARY_PATH=$work/lib

check() { # NAME: the last command's success
  if [ "$2" -eq 0 ]; then echo "ok $1"; else echo "not ok $1"; failed=1; fi
}

# twice NAME MODE PROGRAM [ARGUMENT...]
twice() {
  local name=$1 mode=$2 rc_bare rc_recorded
  shift 2
  FAKEGPU_MODE=$mode "$@" >"$work/$name.bare" 2>&1
  rc_bare=$?
  mkdir "$work/$name.run"
  FAKEGPU_MODE=$mode LD_PRELOAD=$work/lib/libtenure.so TENURE_RUN=$work/$name.run "$@" >"$work/$name.recorded" 2>&1
  rc_recorded=$?
  diff "$work/$name.bare" "$work/$name.recorded" && [ "$rc_bare" -eq 0 ] && [ "$rc_recorded" -eq 0 ]
  check "$name: same output" $?
  "$tenure" report --json "$work/$name.run" >"$work/$name.json"
  check "$name: a journal that can be read" $?
}

# holds NAME WHAT PATTERN: an extended regular expression in the JSON report without its white space
holds() {
  tr -d ' \n' <"$work/$1.json" | grep -qE "$3"
  check "$1: $2" $?
}

for program in "${programs[@]}"; do
  case $(basename "$program") in
  prog_loader)
    for mode in "" olddriver; do
      name=loader${mode:+-$mode}
      twice "$name" "$mode" "$program"
      grep -q '^alloc=0' "$work/$name.bare"
      check "$name: the program got its memory" $?
      holds "$name" "what the second driver gave is recorded" '"cuMemAlloc_v2"'
    done
    ;;
  prog_constructor)
    twice constructor "" timeout 60 "$program"
    grep -q '^worker: malloc=0' "$work/constructor.bare"
    check "constructor: the worker got its memory" $?
    ;;
  prog_poll)
    twice poll "" "$program"
    grep -q '^failures=0 done=1' "$work/poll.bare"
    check "poll: every poll said done" $?
    "$poll_checker" "$work"/poll.run/*.tnj || failed=1
    ;;
  prog_launches)
    twice launches "" "$program"
    grep -q '^failures=0 refused=1$' "$work/launches.bare"
    check "launches: one launch is refused" $?
    "$launch_checker" "$work"/launches.run/*.tnj || failed=1
    ;;
  prog_short_way)
    # Also where no hook sees the context change.
    for hidden in "" cuCtxSetCurrent; do
      name=short_way${hidden:+-unseen}
      TENURE_TEST_HIDE=$hidden twice "$name" "" "$program"
      grep -q '^failures=0 refused=2 child=0$' "$work/$name.bare"
      check "$name: two launches are refused, and the child's" $?
      "$short_way_checker" "$work/$name.run"/*.tnj || failed=1
    done
    ;;
  prog_kernels)
    # A kernel that is known in its context is no reason to ask the device; each call is counted all the same.
    for times in few many; do
      FAKEGPU_STATS=$work/kernels-$times.stats twice "kernels-$times" "" "$program" "$times"
      grep -q '^failures=0 refused=2$' "$work/kernels-$times.bare"
      check "kernels-$times: refused without a context, and without a place for the answer" $?
      looked_up=$(grep -oE '"cuKernelGetFunction":[0-9]+' "$work/kernels-$times.stats")
      holds "kernels-$times" "every look-up is counted" "\"cuKernelGetFunction\"[^}]*\"calls\":${looked_up##*:}}"
      grep -oE '"cuMemGetInfo_v2":[0-9]+' "$work/kernels-$times.stats" >"$work/kernels-$times.asked"
    done
    asked=$(grep -oE '"cuCtxGetCurrent":[0-9]+' "$work/kernels-few.stats")
    [ "${asked##*:}" -lt 500 ]
    check "kernels: a thousand launches into one context's default stream do not ask for it each time (${asked##*:})" $?
    [ -s "$work/kernels-few.asked" ] && diff "$work/kernels-few.asked" "$work/kernels-many.asked"
    check "kernels: the device is asked around a kernel's first look-up in a context alone" $?
    ;;
  prog_copies)
    # The second time managed memory lives, and everything goes the long way.
    for managed in "" managed; do
      name=copies$managed
      twice "$name" "" "$program" $managed
      grep -q '^failures=0 refused=2 child=0$' "$work/$name.bare"
      check "$name: two copies are refused, and the child's" $?
      "$copy_checker" "$work/$name.run"/*.tnj >"$work/$name.events"
      check "$name: stamps are in order" $?
    done
    diff "$work/copies.events" "$work/copiesmanaged.events" && [ "$(wc -l <"$work/copies.events")" -gt 300 ]
    check "copies: the short ways journal what the long ones do" $?
    [ "$(grep -c '^write' "$work/copies.events")" -eq 15 ] # eight blocks, six given anew, the handler's
    check "copies: every block has a first writer" $?
    [ "$(grep -c 'captured=1 calls=1$' "$work/copies.events")" -eq 2 ]
    check "copies: what is captured says so" $?
    "$copy_checker" "$work/copies.run"/*.tnj bare
    check "copies: some went the short way" $?
    "$copy_checker" "$work/copiesmanaged.run"/*.tnj bare && failed=1
    ;;
  prog_ended)
    # Also where the runtime's driver calls pass us by, and whoever uses what has ended is ended.
    for direct in 0 1; do
      name=ended${direct#0}
      FAKEGPU_DIRECT=$direct twice "$name" "" "$program"
      grep -q '^failures=0$' "$work/$name.bare"
      check "$name: every call succeeded" $?
      "$end_checker" "$work/$name.run"/*.tnj || failed=1
    done
    holds ended1 "the runtime that passes us by is named" 'libcudart.so.13callsthedriverpastthehooks'
    ! tr -d ' \n' <"$work/ended.json" | grep -q 'callsthedriverpastthehooks'
    check "ended: and none where none does" $?
    ;;
  prog_ended_*)
    for direct in 0 1; do
      name=$(basename "$program")$direct
      mkdir "$work/$name.run"
      TENURE_LIBUNWIND=$work/lib/libunwind.so.8 TENURE_RUN=$work/$name.run FAKEGPU_DIRECT=$direct "$program" >"$work/$name.out" 2>&1
      grep -q '^failures=0$' "$work/$name.out"
      check "$name: every call succeeded" $?
      "$end_checker" "$work/$name.run"/*.tnj || failed=1
    done
    ;;
  prog_handles)
    twice handles "" "$program"
    grep -q '^failures=0' "$work/handles.bare"
    check "handles: every call succeeded" $?
    "$checker" "$work"/handles.run/*.tnj || failed=1
    ;;
  esac
done
exit $failed
