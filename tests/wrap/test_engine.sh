#!/bin/bash
# The legacy engine, recorded by the preload and linked with the archive, in each of its configurations: equal totals; without the
# libraries they differ by exactly the rows of the library that the engine opens.
# shellcheck source=tests/wrap/lib.sh
. "${0%/*}/lib.sh"

# The card and the library of the engine's own tests.
export ENGINE_BLAS=libfakeblas.so FAKEGPU_MEM_MIB=32607 FAKEGPU_CONTEXT_MIB=1680
E=legacy_engine
# The engine's loader threads share one site of pinned staging buffers: how many they hold at once is chance in every run, so
# the peaks of pinned sites are left out.
sites() { # NAME PROGRAM
    sed -E 's/^(.* pinned host .*) [0-9]+ [0-9]+$/\1/' "$(part "$1" own_sites "$2")" >"$1.sites"
    echo "$1.sites"
}
for config in dense moe vision; do
    bare bare_$config "$BIN/$E" --config $config
    same "$config: the engine works" "$(cat bare_$config.rc)" 0
    P=plain_$config W=wrap_$config N=nolibs_$config
    preloaded $P "$BIN/$E" --config $config
    linked $W "$BIN/${E}_wrap" --config $config
    linked $N "$BIN/${E}_nolibs" --config $config
    for run in $P $W $N; do unchanged $run bare_$config; done

    same "$config: linked, nothing dropped" "$(sed -n '1,5p' "$(part $W process ${E}_wrap)" | paste -sd' ')" "1 wrap libunwind 0 true"
    same "$config: without libraries, nothing dropped" "$(sed -n '1,5p' "$(part $N process ${E}_nolibs)" | paste -sd' ')" "1 wrap libunwind 0 true"
    same_files "$config: totals" "$(part $W totals ${E}_wrap)" "$(part $P totals $E)"
    same_files "$config: driver calls" "$(part $W driver_calls ${E}_wrap)" "$(part $P driver_calls $E)"
    same_files "$config: runtime calls" "$(part $W runtime_calls ${E}_wrap)" "$(part $P runtime_calls $E)"
    same_files "$config: sites" "$(sites $W ${E}_wrap)" "$(sites $P $E)"

    same "$config: owners" "$(paste -sd' ' "$(part $P owners $E)")" "$E libfakeblas.so"
    same "$config: without libraries, owners" "$(paste -sd' ' "$(part $N owners ${E}_nolibs)")" "${E}_nolibs"
    same_files "$config: without libraries, totals" "$(part $N totals_without_peaks ${E}_nolibs)" "$(part $P totals_without_libraries $E)"
    same_files "$config: without libraries, sites" "$(sites $N ${E}_nolibs)" "$(sites $P $E)"
done

# What the program says by tenure.h reaches the archive as it does the preload; with the loader's functions exported and without.
said() { jq -c '[.phases[].phase, .marks[].mark, .serving.driver_allocations]' "$1.json"; }
for run in "preloaded told_plain $E" "linked told_wrap ${E}_wrap" "linked told_nolibs ${E}_nolibs"; do
    read -r how name program <<<"$run"
    $how "$name" "$BIN/$program" --config dense --instrumented
done
same "tenure.h under the preload" "$(jq -c '[.phases[].phase]' told_plain.json)" '["loading","planning","serving","planning","serving"]'
same "tenure.h with the archive" "$(said told_wrap)" "$(said told_plain)"
same "tenure.h without the libraries" "$(said told_nolibs)" "$(said told_plain)"
finish
