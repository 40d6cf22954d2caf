#!/bin/bash
# The legacy engine's three configurations on the fake card against the tables that they were written to: footprint and deltas between
# checkpoints, all of it with an owner; who made the first forward pass's claim; what is allocated while serving, each with its site; and the
# same by triggers alone.
own=$(pwd)/$2
# shellcheck source=tests/shim/lib.sh
. "$1"
# shellcheck source=tests/phases/lib.sh
. "$own"
export ENGINE_BLAS=libfakeblas.so FAKEGPU_MEM_MIB=32607 FAKEGPU_CONTEXT_MIB=1680

# MiB at the checkpoints 00 to 05 as differences (the first one absolute), in steady state and under load, measured once on the card that the fake one stands for.
declare -A DELTAS=([dense]='1680 676 4700 6990 0 4180' [moe]='1680 676 19962 1552 0 2' [vision]='1680 676 3026 7798 1610 2')
declare -A STEADY=([dense]=18226 [moe]=23872 [vision]=14792)
declare -A PEAK=([dense]=18416 [moe]=24050 [vision]=14992)
marks=(00_pre_init 01_prewarm_gemm 02_weights+decode_cache 03_kv_cache 04_features 05_post_warmup)

# near NAME GOT WANTED: within 2.5 % of the configuration's steady state
near() {
    local off=$(($2 - $3))
    if [ ${off#-} -le $((STEADY[$config] * 25 / 1000)) ]; then ok "$1: $2 MiB"; else not_ok "$1" "$2 MiB, not about $3"; fi
}
# mark NAME FILTER: of a mark of this configuration's run
mark() { jq -r --arg m "$1" ".marks[] | select(.mark == \$m) | $2" "$config.json"; }

# A report is made once.
json() {
    [ -f "$1.json" ] || tenure report --json "$1" >"$1.json" 2>/dev/null
    jq -r "$2" "$1.json"
}
NAMES='([.sites[] | {key: .key, value: .frames[0].symbol}] | from_entries) as $names'

for config in dense moe vision; do
    native $config.native legacy_engine --config $config
    recorded $config.recorded $config legacy_engine --config $config --instrumented
    same_output "$config: nothing changes for the engine" $config.native $config.recorded
    tenure report --json $config >$config.json
    # The engine's balloon stands in the one delta and out of the next; the report knows its bytes.
    balloon=$(($(jq "$NAMES"' | first(.marks[] | select(.mark == "02_weights+decode_cache")).by_site[] | select($names[.key] == "balloon_inflate") | .delta_backed_bytes' $config.json) >> 20))
    at_least "$config: the balloon is a site" "${balloon:-0}" 1000
    n=0 wanted_sum=0
    for wanted in ${DELTAS[$config]}; do
        wanted_sum=$((wanted_sum + wanted))
        name=${marks[$n]}
        if [ $n = 0 ]; then got=$(mark "$name" '.devices[0].used_bytes'); else got=$(mark "$name" '.devices[0].delta_used_bytes'); fi
        got=$((got >> 20))
        [ $n = 2 ] && got=$((got - balloon))
        [ $n = 3 ] && got=$((got + balloon))
        near "$config: $name" $got "$wanted"
        n=$((n + 1))
    done
    near "$config: steady state" $(($(mark 05_post_warmup '.devices[0].used_bytes') >> 20)) "${STEADY[$config]}"
    near "$config: under load" $(($(mark served '.devices[0].used_bytes') >> 20)) "${PEAK[$config]}"
    same "$config: phases" "$(phases $config)" 'loading planning serving planning:1 serving:1'
    # Allocations explain each delta but for the card's 2 MiB slabs and pools: tables by owner and by site add up to it.
    same "$config: owners and sites add up" "$(jq '[.marks[] | ([.by_owner[].delta_backed_bytes] | add // 0) == ([.by_site[].delta_backed_bytes] | add // 0)
        and ([.by_owner[].delta_backed_bytes] | add // 0) == (.devices[0].delta_backed_bytes // 0)] | all' $config.json)" true
    same "$config: the deltas are allocations" "$(jq '[.marks[1:6][].devices[0] | (.delta_used_bytes - .delta_backed_bytes) / 1048576 | fabs < 48] | all' $config.json)" true
done

# ---- the first forward pass's claim (dense): the engine's own best-effort buffers, not a library's
config=dense
claim=$(mark 05_post_warmup '[.by_owner[] | select(.owner == "legacy_engine") | .delta_backed_bytes] | add')
all=$(mark 05_post_warmup '.devices[0].delta_used_bytes')
at_least "claim: the engine's own part" $((claim * 1000 / all)) 990
own_sites=$(jq -r "$NAMES"' | first(.marks[] | select(.mark == "05_post_warmup")).by_site[:2] | map($names[.key]) | unique | join(" ")' dense.json)
same "claim: made by" "$own_sites" claim_layers
at_least "claim: those two sites" $(($(mark 05_post_warmup '[.by_site[:2][].delta_backed_bytes] | add') * 1000 / all)) 970
same "claim: the library's part was claimed where it was warmed up" "$(mark 01_prewarm_gemm '.by_owner[] | select(.owner == "libfakeblas.so") | .delta_backed_bytes')" $(((64 << 20) + 1024))
holds "claim: the text names it" "$(tenure report dense)" "*05_post_warmup*legacy_engine: executor_forward.c:58 claim_layers*phase serving (api)*"
# Without that behaviour of the engine's the claim is gone, and nothing else takes its place.
recorded without.recorded without legacy_engine --config dense --instrumented --feature-off first_forward --until 05_post_warmup
at_least "claim: without it" $((100 - $(json without '.marks[] | select(.mark == "05_post_warmup") | .devices[0].delta_used_bytes') / 1048576)) 1

# ---- steady-state allocations of the unplanned engine, each with its site, by triggers alone
timeout 120 tenure soak -o soak --top 1000 --planning-when 'line:^phase=planning' --serving-when 'line:^phase=serving' --mark-on '^phase=' -- \
    legacy_engine --config dense >soak.out 2>soak.err </dev/null
same "soak: falls short" $? 1
same "soak: the engine's output is its own" "$(sed '/^\(Falls short\|Holds\|Inconclusive\)/,$d' soak.out | cksum)" "$(cksum <dense.native.out)"
at_least "soak: hundreds of allocations" "$(serving soak repeated)" 300
same "soak: phases by its lines" "$(phases soak):$(causes soak)" 'loading serving planning:1 serving:1:none line line line'
sites=$(json soak '[.serving.by_site[] | select(.repeated > 0)] | length')
at_least "soak: sites" "$sites" 60
same "soak: each is printed" "$(sed -n '/^Sites that allocated again/,/^$/p' soak.out | grep -cE '^ +[0-9]+ +[0-9]+ +[0-9]+ .* [0-9a-f]{16}  [a-zA-Z0-9_]+\.c:[0-9]+ [a-z0-9_.]+$')" "$sites"
same "soak: and they add up" "$(json soak '([.serving.by_site[].driver_allocations] | add) == .serving.driver_allocations')" true
holds "soak: all came back" "$(sed -n '/^Falls/,$p' soak.out)" '*  0 blocks (0 B) more at the end than at the flip to serving*'
same "soak: nothing dropped" "$(json soak .dropped_events)" 0
finish
