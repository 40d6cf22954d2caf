#!/usr/bin/env bash
# Runs each configuration on the fake card: it ends well, prints the same twice
# (the second time on a slower card), stays within the footprint that it was
# written to, gives everything back but what it keeps on purpose, and needs
# little host memory.
set -uo pipefail

[ $# -eq 3 ] || { echo "usage: test_runs.sh ENGINE FAKE_LIBRARY MAXRSS" >&2; exit 2; }
ENGINE=$1
FAKE=$(cd "$(dirname "$2")" && pwd)
maxrss=$3
# shellcheck source=tests/engine/fake_run.sh
. "$(dirname "$0")/fake_run.sh"

# Steady state and peak in MiB, each within two per cent, as measured on the card that this stands for.
declare -A STEADY=([dense]=18226 [moe]=23872 [vision]=14792)
declare -A PEAK=([dense]=18416 [moe]=24050 [vision]=14992)
# What stays on purpose: the matrix library's workspace and a sampling state of
# 256 bytes per sequence of the batch; on the host the digest ring and a page.
declare -A KEPT_DEVICE=([dense]=$((67108864 + 2048)) [moe]=$((67108864 + 2048)) [vision]=$((67108864 + 1024)))
KEPT_HOST=$((512 * 512 + 16384))

near() { [ "$1" -ge $(($2 * 98 / 100)) ] && [ "$1" -le $(($2 * 102 / 100)) ]; }

for config in dense moe vision; do
  engine=$ENGINE
  ENGINE=$maxrss
  if run_engine "$config" -- "$WORK/$config.rss" "$engine" --config "$config"; then
    ok "$config.exit"
  else
    not_ok "$config.exit" "$(tail -n 1 "$WORK/$config.err")"
  fi
  ENGINE=$engine
  run_engine "$config.slow" FAKEGPU_DELAY_US=15 -- --config "$config"
  if cmp -s "$WORK/$config.out" "$WORK/$config.slow.out" && grep -q '^checksum=0x[0-9a-f]\{16\}$' "$WORK/$config.out"; then
    ok "$config.same_output $(grep '^checksum=' "$WORK/$config.out")"
  else
    not_ok "$config.same_output" "$(diff "$WORK/$config.out" "$WORK/$config.slow.out" | head -n 3 | tr '\n' ' ')"
  fi

  steady=$(field "$WORK/$config.out" phase=05_post_warmup used_mib)
  if near "${steady%.*}" "${STEADY[$config]}"; then
    ok "$config.steady $steady MiB"
  else
    not_ok "$config.steady" "$steady MiB, not about ${STEADY[$config]}"
  fi
  peak=$(field "$WORK/$config.out" phase=served used_mib)
  if near "${peak%.*}" "${PEAK[$config]}"; then
    ok "$config.peak $peak MiB"
  else
    not_ok "$config.peak" "$peak MiB, not about ${PEAK[$config]}"
  fi

  # Device 0 comes first among the figures, the host after it.
  live=$(grep -o '"live_requested_bytes":[0-9]*' "$WORK/$config.stats" | cut -d: -f2 | head -n 2 | tr '\n' ' ')
  if [ "$live" = "${KEPT_DEVICE[$config]} $KEPT_HOST " ]; then
    ok "$config.kept device and host $live"
  else
    not_ok "$config.kept" "device and host $live instead of ${KEPT_DEVICE[$config]} $KEPT_HOST"
  fi
  if grep -q '^requests=12 finished=[0-9]* cancelled=[1-9][0-9]* refused=0 ' "$WORK/$config.out"; then
    ok "$config.requests"
  else
    not_ok "$config.requests" "$(grep '^requests=' "$WORK/$config.out")"
  fi
  rss=$(cat "$WORK/$config.rss" 2>/dev/null)
  if at_least "$rss" 1 && [ "$rss" -lt $((2 << 30)) ]; then
    ok "$config.host_memory $((rss >> 20)) MiB"
  else
    not_ok "$config.host_memory" "${rss:-unknown} bytes"
  fi
done
# A prompt that leaves one token behind its shared prefix is a whole tile all the same.
for config in moe vision; do
  if run_engine "$config.short" -- --config "$config" --seed 26 --requests 20; then
    ok "$config.a_prefill_of_one_token"
  else
    not_ok "$config.a_prefill_of_one_token" "$(tail -n 1 "$WORK/$config.short.err")"
  fi
done
exit $BAD
