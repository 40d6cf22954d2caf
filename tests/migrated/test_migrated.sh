#!/bin/bash
# A half-migrated engine: 40 of its sites take from the allocators of tiers/ themselves. Recorded and served, preloaded and linked, it computes what it
# computes bare, which is what the engine does whose sites are all CUDA's; what its own tiers hand out is on the report by site, and the memory that it lies in once.
# usage: test_migrated.sh CHECK_SH TENURE LIBTENURE_SO LIBCUDA_SO HALF_ENGINE HALF_ENGINE_LINKED LEGACY_ENGINE
# shellcheck source=tests/cli/check.sh
. "$1"
TENURE=$(readlink -f "$2")
TENURE_LIB=$(readlink -f "$3")
LD_LIBRARY_PATH=$PWD/$(dirname "$4")
export TENURE_LIB LD_LIBRARY_PATH FAKEGPU_MEM_MIB=32607 FAKEGPU_CONTEXT_MIB=1680 ENGINE_BLAS=libfakeblas.so
half=$(readlink -f "$5") linked=$(readlink -f "$6") legacy=$(readlink -f "$7")
cd "$WORK" || exit 1

checksum() { echo "$rc $(echo "$out" | grep -E '^(request [0-9]+ |checksum)' | cksum)"; }
# report NAME FILTER: of the folder NAME
report() { jq -c "$2" "$1.report"; }
handed='[.sites[] | select(.kind == "handed_out")]'
# The calls in the engine's files above its first frame in the library, by where they are in the program.
calls="$handed | [.[] | [.frames[] | select((.file // \"\") | contains(\"tests/engine/\"))][0].offset] | unique | length"

# both NAME PROGRAM CONFIG [OPTION]: recorded, planned and served
both() {
    local name=$1 program=$2 options=("${@:4}") run=(--config "$3" --seed 3 --requests 8 --instrumented) bare mode
    run "$program" "${run[@]}"
    bare=$(checksum)
    run "$legacy" "${run[@]}"
    same "${name}_computes_as_unmigrated" "$bare" "$(checksum)"
    run "$TENURE" record -q "${options[@]}" -o "$name.record" -- "$program" "${run[@]}"
    same "${name}_recorded_as_bare" "$(checksum)" "$bare"
    run "$TENURE" plan --quiet "$name.record" -o "$name.json"
    same "${name}_is_planned" "$rc:$err" 0:
    run "$TENURE" run -q "${options[@]}" --plan "$name.json" -o "$name.run" -- "$program" "${run[@]}"
    same "${name}_served_as_bare" "$(checksum)" "$bare"
    for mode in record run; do
        "$TENURE" report --json "$name.$mode" >"$name.$mode.report"
        same "${name}_${mode}_has_all_40_sites" "$(report "$name.$mode" "$calls")" 40
        same "${name}_${mode}_gets_all_back" "$(report "$name.$mode" "$handed | [map(.allocs) | add] == [map(.frees) | add] and (map(.live_requested_bytes) | add) == 0")" true
        same "${name}_${mode}_counts_none_of_it_twice" "$(report "$name.$mode" "[($handed | map(.peak_backed_bytes) | add), (.devices[] | .unattributed_bytes, ([.marks[].unattributed_bytes] | unique)), .dropped_events]")" '[0,0,[0],0]'
    done
    # The regions of its arenas are calls of its own, each once in the ledger: recorded from the driver, served from a tier.
    arenas='[.sites[] | select(.kind == "device" or .kind == "pinned") | select([.frames[].function // ""] | any(startswith("site_take")))]'
    same "${name}_regions_are_recorded_once" "$(report "$name.record" "$arenas | [(map(.allocs) | add) > 1, (map(select(.kind == \"device\").peak_backed_bytes) | add) >= 268435456]")" '[true,true]'
    same "${name}_regions_are_served_once" "$(report "$name.run" "$arenas | [(map(.allocs) | add) > 1, (map(select(.kind == \"device\").peak_backed_bytes) | add)]")" '[true,0]'
    same "${name}_has_one_guard" "$(report "$name.run" '[.serving.driver_allocations, .routing.unplanned_calls, .routing.spilled_calls, .routing.served_calls > 1000]')" '[0,0,0,true]'
}

both dense "$half" dense
both linked "$linked" moe --linked
finish
