#!/usr/bin/env bash
# One named check per memory behaviour of the engine. Each looks at what a run
# printed and at what the card counted, must hold in an ordinary run and must
# fail in a run with that behaviour switched off.
set -uo pipefail

[ $# -eq 2 ] || { echo "usage: test_behaviours.sh ENGINE FAKE_LIBRARY" >&2; exit 2; }
ENGINE=$1
FAKE=$(cd "$(dirname "$2")" && pwd)
# shellcheck source=tests/engine/fake_run.sh
. "$(dirname "$0")/fake_run.sh"

# Which configuration shows it best; the others are shown by the dense one.
declare -A CONFIG=(
  [balloon]=moe [kv_from_free]=moe [headroom_small]=moe [headroom_force]=moe [headroom_retry]=vision
)
# Checks that need a run of their own, short and with a setting.
declare -A UNTIL=(
  [balloon]=03_kv_cache [kv_from_free]=03_kv_cache [workspace_ladder]=01_prewarm_gemm
)
# The fourth plain allocation is the library workspace, when no library is there.
declare -A SETTING=(
  [workspace_ladder]="ENGINE_BLAS= FAKEGPU_FAIL=cuMemAlloc_v2:4"
  [kv_from_free]="FAKEGPU_MEM_MIB=32300"
)

line() { field "$WORK/$1.out" "behaviour $2 " "$3"; }
phase_delta() { local d; d=$(field "$WORK/$1.out" "phase=$2 " delta_mib); echo "${d%.*}"; }

check_balloon() {
  [ "$(field "$WORK/$1.out" 'kv ' target)" -gt "$(sed -n 's/^kv blocks=\([0-9]*\).*/\1/p' "$WORK/$1.out")" ]
}
# On a card with 307 MiB less the pool must be smaller by what those hold, not the same.
check_kv_from_free() {
  local blocks
  blocks=$(sed -n 's/^kv blocks=\([0-9]*\).*/\1/p' "$WORK/$1.out")
  at_least "$blocks" 1 && [ "$blocks" -lt 1920 ]
}
check_workspace_ladder() {
  [ "$(line "$1" workspace_ladder bytes)" = $((32 << 20)) ] && [ "$(line "$1" workspace_ladder sticky)" = 0 ]
}
check_headroom_small() {
  at_least "$(line "$1" headroom_small unchecked)" 10 && ! grep -q '^vram: exec/hidden:' "$WORK/$1.err"
}
check_headroom_force() {
  at_least "$(line "$1" headroom_force forced)" 144 && ! grep -q '^vram: exec/shared_workspace' "$WORK/$1.err"
}
check_headroom_retry() {
  at_least "$(line "$1" headroom_retry went_ahead)" 27 && at_least "$(phase_delta "$1" 04_features)" 1500
}
check_rollback_groups() {
  [ "$(line "$1" rollback_groups groups)" = 3 ] && [ "$(line "$1" rollback_groups freed)" = 4 ]
}
check_best_effort() {
  at_least "$(line "$1" best_effort refused)" $((32 << 30)) && [ "$(line "$1" best_effort fallback)" = $((1 << 20)) ] &&
    [ "$(line "$1" best_effort sticky)" = 0 ]
}
check_first_forward() {
  at_least "$(line "$1" first_forward bytes)" $((3800 << 20)) && at_least "$(phase_delta "$1" 05_post_warmup)" 3800
}
check_load_transients() {
  at_least "$(line "$1" load_transients layers)" 6 && [ "$(line "$1" load_transients left)" = 0 ]
}
check_loader_threads() {
  [ "$(line "$1" loader_threads threads)" = 3 ] && [ "$(line "$1" loader_threads shards)" = 12 ]
}
check_draft_model() { at_least "$(line "$1" draft_model bytes)" $((64 << 20)); }
# A swap to a model of the same shape needs its weights once more.
check_model_swap() {
  [ "$(line "$1" model_swap swapped)" = 1 ] && [ "$(line "$1" model_swap changed)" = 1 ] &&
    at_least "$(calls "$1" cuMemAlloc_v2)" 1500
}
check_swap_failure() { [ "$(line "$1" swap_failure swapped)" = 0 ] && [ "$(line "$1" swap_failure back)" = 1 ]; }
check_prefix_sharing() {
  at_least "$(line "$1" prefix_sharing hits)" 2
}
check_prefix_pinning() { at_least "$(line "$1" prefix_pinning passed_over)" 1; }
check_streaming_holes() { at_least "$(line "$1" streaming_holes holes)" 16; }
check_prefix_persist() { at_least "$(line "$1" prefix_persist loaded)" 1; }
check_cancellation() {
  at_least "$(field "$WORK/$1.out" requests= cancelled)" 2 &&
    [ "$(sed '/^requests=/q' "$WORK/$1.out" | grep -c '^request .* cancelled$')" = \
      "$(field "$WORK/$1.out" requests= cancelled)" ]
}
check_spec_toggle() {
  at_least "$(line "$1" spec_toggle toggles)" 4 && at_least "$(line "$1" spec_toggle steps)" 4 &&
    at_least "$(line "$1" spec_toggle drops)" 2
}
check_graph_capture() {
  local replays steps
  replays=$(line "$1" graph_capture replays)
  steps=$(line "$1" spec_toggle steps)
  at_least "$(line "$1" graph_capture captures)" 4 && at_least "$replays" 20 &&
    [ "$(calls "$1" cuGraphLaunch)" = $((replays + steps)) ]
}
check_graph_grow() { at_least "$(line "$1" graph_grow growths)" 1; }
check_fifo_scratch() { at_least "$(line "$1" fifo_scratch groups)" 20; }
check_lifo_scratch() { at_least "$(line "$1" lifo_scratch groups)" 20; }
# Stream-ordered frees and allocations differ by what crossed the families.
check_free_other_family() {
  local crossed back
  crossed=$(line "$1" free_other_family async_of_plain)
  back=$(line "$1" free_other_family plain_of_async)
  at_least "$crossed" 10 && at_least "$back" 5 &&
    [ $(($(calls "$1" cuMemFreeAsync) - $(calls "$1" cuMemAllocAsync))) = $((crossed - back)) ]
}
check_pool_threshold() { [ "$(field "$WORK/$1.out" 'pool ' threshold)" = 18446744073709551615 ]; }
check_pool_watermark() {
  [ "$(field "$WORK/$1.out" 'pool ' at_flip)" -lt "$(field "$WORK/$1.out" 'pool ' used_high_before)" ]
}
check_init_after_serving() {
  [ "$(line "$1" init_after_serving serving)" = 1 ] &&
    sed -n '/^phase=serving/,$p' "$WORK/$1.out" | grep -q '^behaviour init_after_serving'
}
check_overrun_slack() {
  [ "$(line "$1" overrun_slack bytes)" = 267 ] && [ "$(line "$1" overrun_slack intact)" = 267 ]
}
check_memory_trim() {
  local used
  used=$(field "$WORK/$1.out" phase=shutdown used_mib)
  at_least "$(line "$1" memory_trim returned)" $((32 << 20)) && [ "${used%.*}" -lt 1800 ]
}
check_cutlass_lazy_growth() { at_least "$(line "$1" cutlass_lazy_growth growths)" 1; }

declare -A done_run=()
features=$(LD_LIBRARY_PATH="$FAKE${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$ENGINE" --list-features) || exit 1
for name in $features; do
  config=${CONFIG[$name]:-dense}
  read -ra vars <<<"${SETTING[$name]:-}"
  until=(${UNTIL[$name]:+--until "${UNTIL[$name]}"})
  if ! declare -F "check_$name" >/dev/null; then
    not_ok "$name" "there is no check for it"
    continue
  fi

  on=$config
  [ -z "${UNTIL[$name]:-}" ] || on=on.$name
  if [ -z "${done_run[$on]:-}" ]; then
    run_engine "$on" "${vars[@]}" -- --config "$config" "${until[@]}" ||
      not_ok "$name" "the ordinary run ended with $?: $(tail -n 1 "$WORK/$on.err")"
    done_run[$on]=1
  fi
  # A run that cannot go on without the behaviour shows its absence too.
  run_engine "off.$name" "${vars[@]}" -- --config "$config" "${until[@]}" --feature-off "$name" || true

  if ! "check_$name" "$on"; then
    not_ok "$name" "not seen in an ordinary run"
  elif "check_$name" "off.$name" 2>/dev/null; then
    not_ok "$name" "still seen when it is switched off"
  else
    ok "$name"
  fi
done
exit $BAD
