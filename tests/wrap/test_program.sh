#!/bin/bash
# One program, recorded by the preload and linked with the archive: the journals' totals are equal; without the libraries they differ by
# exactly the libraries' rows. With the shared runtime and with the static one.
# shellcheck source=tests/wrap/lib.sh
. "${0%/*}/lib.sh"

BLAS=$LIB/libfakeblas.so
for runtime in shared static; do
    P=program_$runtime W=program_${runtime}_wrap N=program_${runtime}_nolibs
    bare bare_$runtime "$BIN/$P" "$BLAS"
    same "$runtime: the program works" "$(cat bare_$runtime.rc)" 0
    preloaded $P "$BIN/$P" "$BLAS"
    linked $W "$BIN/$W" "$BLAS"
    linked $N "$BIN/$N" "$BLAS"
    for run in $P $W $N; do unchanged $run bare_$runtime; done

    same "$runtime: linked, with libunwind, nothing dropped" "$(paste -sd' ' "$(part $W process $W)")" "1 wrap libunwind 0 true 0 1"
    same "$runtime: without libraries, likewise" "$(paste -sd' ' "$(part $N process $N)")" "1 wrap libunwind 0 true 0 1"
    same_files "$runtime: totals" "$(part $W totals $W)" "$(part $P totals $P)"
    same_files "$runtime: blocks that a reset ended" "$(part $W ended $W)" "$(part $P ended $P)"
    same_files "$runtime: driver calls" "$(part $W driver_calls $W)" "$(part $P driver_calls $P)"
    same "$runtime: owners" "$(paste -sd' ' "$(part $W owners $W)")" "libfakeblas.so $W"

    same "$runtime: without libraries, owners" "$(paste -sd' ' "$(part $N owners $N)")" "$N"
    same_files "$runtime: without libraries, totals" "$(part $N totals_without_peaks $N)" "$(part $P totals_without_libraries $P)"
    # Peaks of a whole kind cannot be told apart by owner; those of each site can.
    same_files "$runtime: sites by kind" "$(part $W own_sites_by_kind $W)" "$(part $P own_sites_by_kind $P)"
    same_files "$runtime: without libraries, sites by kind" "$(part $N own_sites_by_kind $N)" "$(part $P own_sites_by_kind $P)"
    # What the libraries' rows are, so that the difference above is not one of nothing.
    if cmp -s $P.totals_without_libraries "$(part $P totals_without_peaks $P)"; then
        not_ok "$runtime: the library has rows" "none"
    else ok "$runtime: the library has rows"; fi
done

# The preload does not see a static runtime's own functions; the archive does, so its rows are the shared runtime's.
same_files "sites of the two runtimes" "$(part program_static_wrap own_sites program_static_wrap)" "$(part program_shared own_sites program_shared)"
same_files "runtime calls" "$(part program_shared_wrap runtime_calls program_shared_wrap)" "$(part program_shared runtime_calls program_shared)"
same_files "runtime calls, static" "$(part program_static_wrap runtime_calls program_static_wrap)" program_shared.runtime_calls

# A linked program under `tenure record`: recorded once, by the preload.
for W in program_shared_wrap program_shared_nolibs program_static_wrap program_static_nolibs; do
    preloaded both_$W "$BIN/$W" "$BLAS"
    unchanged both_$W bare_shared
    same "$W under record: one journal, the preload's" "$(paste -sd' ' "$(part both_$W process $W)")" "1 preload libunwind 0 true 0 1"
    same_files "$W under record: totals" "$(part both_$W totals $W)" program_shared.totals
done

# Without TENURE_RUN nothing is written and nothing changes.
bare unasked "$BIN/program_shared_wrap" "$BLAS"
unchanged unasked bare_shared
# Without libunwind beside it: by TENURE_LIBUNWIND.
mkdir alone
cp "$BIN/program_shared_wrap" alone/
export TENURE_LIBUNWIND=$LIB/libunwind.so.8
linked named alone/program_shared_wrap "$BLAS"
unset TENURE_LIBUNWIND
same "libunwind by TENURE_LIBUNWIND" "$(part named process x >/dev/null; sed -n 3p named.process)" libunwind

# What tenure.h looks up leaves the executable, and with libraries the loader's two functions.
exported() { nm -D --defined-only "$BIN/$1" | awk '{ print $3 }' | grep -E '^(dlsym|dlclose|tenure|tn_|__wrap|cuda|cu[A-Z]|nvml)' | sort | paste -sd' '; }
same "exports" "$(exported program_shared_wrap)" "dlclose dlsym tenure_tiers_seam_v1 tenure_v1_mark tenure_v1_phase tenure_v1_range"
same "exports without libraries" "$(exported program_shared_nolibs)" "tenure_tiers_seam_v1 tenure_v1_mark tenure_v1_phase tenure_v1_range"
finish
