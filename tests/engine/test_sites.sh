#!/usr/bin/env bash
# Every line with an allocation call is reached in each configuration, seen by a
# tracer of our own; and check_sites.sh tells when one is not.
set -uo pipefail

[ $# -eq 3 ] || { echo "usage: test_sites.sh ENGINE FAKE_LIBRARY TRACER" >&2; exit 2; }
ENGINE=$1
FAKE=$(cd "$(dirname "$2")" && pwd)
tracer=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
here=$(dirname "$0")
# shellcheck source=tests/engine/fake_run.sh
. "$here/fake_run.sh"

trace() {
  local name=$1
  shift
  run_engine "$name" LD_PRELOAD="$tracer" SITE_TRACE="$WORK/$name.json" -- "$@"
}

for config in dense moe vision; do
  trace "$config" --config "$config"
  if said=$("$here/check_sites.sh" "$WORK/$config.json" "$ENGINE" 2>&1) && [ "$said" = "380 of 380 reached" ]; then
    ok "$config.sites $said"
  else
    not_ok "$config.sites" "$(tail -n 5 <<<"$said" | tr '\n' ' ')"
  fi
done

# With the swap left out its three lines must be named as missing.
trace noswap --config dense --feature-off model_swap
said=$("$here/check_sites.sh" "$WORK/noswap.json" "$ENGINE" 2>&1)
code=$?
if [ $code -eq 1 ] && [ "$(grep -c '^missing runtime/model_swap.c:' <<<"$said")" = 3 ] &&
  [ "$(tail -n 1 <<<"$said")" = "377 of 380 reached" ]; then
  ok "missing_lines_are_named"
else
  not_ok "missing_lines_are_named" "exit code $code: $(tail -n 4 <<<"$said" | tr '\n' ' ')"
fi

# The funnel's 31 callers are told apart although one function allocates for all.
funnel=$("$here/list_sites.sh" --calls | grep -c ':vram_alloc$')
if [ "$funnel" = 31 ] && ! "$here/list_sites.sh" | grep -q '^memory/vram_allocator.c:'; then
  ok "funnel_callers"
else
  not_ok "funnel_callers" "$funnel callers listed"
fi

for bad in "$WORK/none.json" "$WORK/dense.out"; do
  "$here/check_sites.sh" "$bad" "$ENGINE" >/dev/null 2>"$WORK/said"
  code=$?
  if [ $code -eq 2 ] && [ "$(wc -l <"$WORK/said")" = 1 ]; then
    ok "bad_input $(basename "$bad")"
  else
    not_ok "bad_input $(basename "$bad")" "exit code $code"
  fi
done
exit $BAD
