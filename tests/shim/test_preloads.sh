#!/bin/sh
# Other preloads that stand in front of one CUDA name: the program meets them as it does without us, and the names that they
# lack are still the runtime's. And a sanitizer's library, which must not mind us.
# shellcheck source=tests/shim/lib.sh
. "$1"
ours=$PRELOAD
mkdir second
cp -L "$LIB/libcudart.so.13" second/
second=$PWD/second/libcudart.so.13

# meets NAME LIBRARIES: the same output and codes, and every call recorded at the runtime's level
meets() {
    native "$1.native" env LD_PRELOAD="$2" "$BIN/prog_preloads" "$second"
    same "$1_natively" "$rc:$(tail -n 1 "$1.native.out"):$(grep -c 'in front' "$1.native.err")" "0:query 0:$3"
    PRELOAD="$ours $2"
    preloaded "$1.record" "run.$1" "$BIN/prog_preloads" "$second"
    same_output "$1_is_met_in_front" "$1.native" "$1.record"
    same "$1_is_recorded" "$(total "run.$1" allocs):$(total "run.$1" frees)" 3:3
    PRELOAD="$ours $2"
    preloaded "$1.forward" '' "$BIN/prog_preloads" "$second"
    same_output "$1_is_met_without_recording" "$1.native" "$1.forward"
}

meets one_with_allocations "$LIB/libfront_malloc.so" 3
meets one_with_frees "$LIB/libfront_free.so" 3
meets both "$LIB/libfront_free.so $LIB/libfront_malloc.so" 6

# The fake card keeps what it has to the end, and so does a driver; what this test is about is the order of the libraries.
export ASAN_OPTIONS=detect_leaks=0
native sanitizer.native "$BIN/prog_asan"
same sanitizer_natively "$rc:$(cat sanitizer.native.out)" 0:7
recorded sanitizer.record run.sanitizer "$BIN/prog_asan"
same_output a_sanitizer_bears_us_in_front sanitizer.native sanitizer.record
same its_calls_are_recorded "$(total run.sanitizer allocs):$(total run.sanitizer frees)" 1:1
finish
