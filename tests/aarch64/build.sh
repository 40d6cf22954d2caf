#!/bin/sh
# Builds by one C compiler, CC, what the tests of this folder run: the programs, their libraries and a driver of the smallest
# size; with the shim's sources named as well, libtenure.so too. Run in the folder that shim/, ledger/ and tests/ lie in.
# Arguments: the architecture (x86_64 or aarch64), the output folder, CUDA's include folder, the sources of the shim and of what it carries.
set -eu
arch=$1 out=$2 include=$3
shift 3
here=tests/aarch64
mkdir -p "$out"
flags="-std=c17 -Wall -Wextra -Werror -O2 -g -I. -isystem $include"

objects=
for source in "$@"; do
    case $source in
    *_x86_64.S) [ "$arch" = x86_64 ] || continue ;;
    *_aarch64.S) [ "$arch" = aarch64 ] || continue ;;
    *journal_reader.c | *reader_*.c | *control_client.c) continue ;; # the command's half of the ledger
    */backend_cuda_load.c | */seam_find.c | */backend_host.c | */block_pool_check.c) continue ;; # what looks for functions itself, and fakes
    *.c) ;;
    *) continue ;;
    esac
    object=$out/$(echo "$source" | tr / _).o
    gnu=-D_GNU_SOURCE
    if grep -q '^#define _GNU_SOURCE' "$source"; then gnu=; fi
    # shellcheck disable=SC2086
    $CC $flags $gnu -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-omit-frame-pointer \
        -include shim/glibc_compat.h -c "$source" -o "$object"
    objects="$objects $object"
done
if [ -n "$objects" ]; then
    # shellcheck disable=SC2086
    $CC -shared -Wl,-soname,libtenure.so -Wl,-z,defs -Wl,-z,now -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 \
        $objects -o "$out/libtenure.so"
    # shellcheck disable=SC2086
    rm $objects
fi

# shellcheck disable=SC2086
{
    # Its own references stay its own, as the real driver's do.
    $CC $flags -fPIC -shared -Wl,-Bsymbolic -Wl,-soname,libcuda.so.1 $here/mini_cuda.c -o "$out/libcuda.so.1"
    for n in 1 2 3; do
        $CC $flags -DNUMBER=$n -fPIC -shared -Wl,-soname,libnext$n.so $here/next.c -o "$out/libnext$n.so" -ldl
    done
    $CC $flags -DNUMBER=4 -fPIC -shared -Wl,-soname,libnext4.so $here/next.c -o "$out/libnext4.so" -Wl,--no-as-needed \
        "$out/libcuda.so.1" -ldl
    $CC $flags $here/program.c -o "$out/program" -Wl,--no-as-needed "$out/libnext1.so" "$out/libnext2.so" "$out/libnext3.so" -ldl
    $CC -shared -nostdlib -Wl,-soname,libobserve.so $here/observe_$arch.S -o "$out/libobserve.so"
    $CC $flags $here/trampoline.c $here/call_$arch.S -o "$out/trampoline" -Wl,--no-as-needed "$out/libobserve.so" -ldl
}
