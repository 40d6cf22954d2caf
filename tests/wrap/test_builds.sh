#!/bin/bash
# The archive in builds that are not ours: docs/WRAP.md's lines for make, by each compiler and linker that is installed, and
# CMake's function. Each program must record two allocations and one free, and the same output as without the archive.
# shellcheck source=tests/wrap/lib.sh
. "${0%/*}/lib.sh"
TENURE=$BIN
ls "$TENURE"/libtenure_wrap.a "$TENURE"/tenure_wrap.flags "$TENURE"/tenure-wrap.cmake >/dev/null || not_ok "the folder of the archive" "something is missing"
WANTED="cudaMalloc 2 1 5242880 5243880"
recorded() { # NAME PROGRAM
    linked "$1" "$2"
    same "$1: output" "$(cat "$1.out")" "result 0, two blocks"
    same "$1: journal" "$(jq -r '.devices[0] as $d | .sites | map(.apis[0]) | unique | join(",") | "\(.) \($d.allocs) \($d.frees) \($d.live_requested_bytes) \($d.peak_requested_bytes)"' "$1.json")" "$WANTED"
}

# make: the flags on the line that links, the archive among the libraries.
cat >Makefile <<'END'
LDFLAGS += @$(TENURE)/$(FLAGS)
LDLIBS += $(TENURE)/libtenure_wrap.a -ldl -lpthread
foreign: foreign.o
	$(CC) $(LINKER) $(LDFLAGS) foreign.o $(LDLIBS) $(LIB)/libcudart.so.13 -o foreign
END
cp "$BIN/foreign.c" .
for compiler in gcc clang; do
    for linker in "" -fuse-ld=gold -fuse-ld=lld -Wl,--as-needed -no-pie; do
        for flags in tenure_wrap.flags tenure_wrap_nolibs.flags; do
            name="$compiler${linker:+ $linker} $flags"
            tool=ld.${linker#-fuse-ld=}
            if ! command -v $compiler >/dev/null; then
                skip "$name" "no $compiler"
                continue
            fi
            if [ "$tool" != "ld.$linker" ] && ! command -v "$tool" >/dev/null; then
                skip "$name" "no $tool"
                continue
            fi
            rm -f foreign foreign.o
            id=$(echo "$name" | tr ' ,=' '___')
            if make -s CC=$compiler TENURE="$TENURE" LIB="$LIB" FLAGS=$flags LINKER="$linker" foreign >"make_$id.txt" 2>&1; then recorded "make_$id" ./foreign
            else not_ok "make: $name" "$(head -5 "make_$id.txt")"; fi
        done
    done
done

if command -v cmake >/dev/null; then
    cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.13)
project(foreign C)
include($TENURE/tenure-wrap.cmake)
add_executable(with_libs foreign.c)
target_link_libraries(with_libs PRIVATE $LIB/libcudart.so.13)
tenure_wrap(with_libs)
add_executable(without_libs foreign.c)
tenure_wrap(without_libs NO_LIBS)
target_link_libraries(without_libs PRIVATE $LIB/libcudart.so.13)
END
    if cmake -S . -B cmake -G "Unix Makefiles" >cmake.txt 2>&1 && cmake --build cmake >>cmake.txt 2>&1; then
        recorded cmake_libs cmake/with_libs
        recorded cmake_nolibs cmake/without_libs
        same "cmake: dlsym leaves the first alone" "$(for p in with_libs without_libs; do nm -D --defined-only cmake/$p | grep -c ' dlsym$'; done | paste -sd' ')" "1 0"
    else not_ok cmake "$(tail -5 cmake.txt)"; fi
    sed -i 's/NO_LIBS/NO_LIPS/' CMakeLists.txt
    if cmake -S . -B wrong >wrong.txt 2>&1; then not_ok "cmake: a wrong argument" "accepted"; else
        same "cmake: a wrong argument" "$(grep -c 'unknown argument: NO_LIPS' wrong.txt)" 1
    fi
else skip cmake "cmake is not installed"; fi

# The same file, byte for byte, of the same input: nothing of the machine or the moment is in it.
same "no times in the archive" "$(ar tv "$TENURE/libtenure_wrap.a" | awk '{ print $2, $NF }')" "0/0 tenure_core.o"
# What a host program can meet of it.
same "names in the archive" "$(nm --defined-only -g "$TENURE/libtenure_wrap.a" | awk 'NF == 3 { print $3 }' | grep -vE '^__wrap_(cu|nvml|dlsym$|dlclose$)' | LC_ALL=C sort | paste -sd' ' -)" \
  "tenure_tiers_seam_v1 tenure_v1_mark tenure_v1_phase tenure_v1_range tenure_wrap"
finish
