#!/bin/bash
# The dlsym trampoline and the way to a journal on one architecture: ARCH is x86_64 (run as it is) or aarch64 (under
# qemu-user). Arguments: ARCH, the command, this machine's libtenure.so, then the programs and libraries of ARCH.
arch=$1 tenure=$(realpath "$2") host_preload=$(realpath "$3")
shift 3
WORK=$(mktemp -d "${TEST_TMPDIR:-/tmp}/arch-XXXXXX") || exit 1
trap 'rm -rf "$WORK"' EXIT
for file in "$@"; do cp -L "$file" "$WORK/"; done
chmod -R u+w "$WORK"
cd "$WORK" || exit 1
unset LD_PRELOAD LD_LIBRARY_PATH TENURE_RUN TENURE_LIBUNWIND
failures=0
ok() { echo "ok $arch: $1"; }
not_ok() {
    echo "not ok $arch: $1: $2"
    failures=$((failures + 1))
}
same() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', wanted '$3'"; fi; }
skip() {
    echo "skip $arch: $1"
    exit 0
}

# start VARIABLE=VALUE... PROGRAM
if [ "$arch" = aarch64 ]; then
    command -v aarch64-linux-gnu-gcc >/dev/null || skip "no cross compiler aarch64-linux-gnu-gcc"
    command -v qemu-aarch64 >/dev/null || skip "no qemu-aarch64"
    start() {
        local settings=()
        while [ "${1%%=*}" != "$1" ]; do
            settings+=(-E "$1")
            shift
        done
        qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$WORK" "${settings[@]}" "$@"
    }
else
    start() { env "LD_LIBRARY_PATH=$WORK" "$@"; }
fi
preload=$WORK/libtenure.so

# The trampoline: the same things hold of a bare dlsym and of one behind the shim's.
start ./trampoline >bare.txt
same "the observed dlsym itself" "$?" 0
start LD_PRELOAD="$preload" ./trampoline >through.txt
same "the observed dlsym through the trampoline" "$?" 0
same "every look-up was observed" "$(grep -c '^ok' through.txt)" "$(grep -c '^ok' bare.txt)"
sed "s/^ok /ok $arch: trampoline, /; s/^not ok /not ok $arch: trampoline, /" through.txt
failures=$((failures + $(grep -c '^not ok' through.txt)))

# Look-ups and the driver.
start ./program >native.txt 2>&1
same "the program runs" "$?" 0
same "who is asking" "$(grep 'next of who' native.txt)" "next of who: 2 3 0"
start LD_PRELOAD="$preload" ./program >inert.txt 2>&1
same "not asked to record: same output" "$(diff native.txt inert.txt)" ""
same "whose scope" "$(grep 'own scope' native.txt)" "in its own scope: 1, in the program's: 0"
mkdir run
start LD_PRELOAD="$preload" TENURE_RUN="$WORK/run" ./program >recorded.txt 2>&1
same "recorded: same output" "$(diff native.txt recorded.txt)" ""
mkdir plain
start TENURE_RUN="$WORK/plain" ./program >/dev/null 2>&1
same "without the shim there is no journal" "$(ls plain)" ""

# The journal, read by this machine's command.
"$tenure" report --json run >report.json 2>report.err
same "the report is made" "$?" 0
value() { jq -r "$1" report.json; }
same "allocations, frees, refusals" "$(value '[.devices[].kinds.device | .allocs, .frees, .refused] | join(" ")')" "2 1 1 0 0 1"
same "live and peak, requested" "$(value '.devices[0].kinds.device | "\(.live_requested_bytes) \(.peak_requested_bytes)"')" "3145728 3146728"
same "live and peak, backed" "$(value '.devices[0].kinds.device | "\(.live_backed_bytes) \(.peak_backed_bytes)"')" "4194304 4195328"
same "the device" "$(value '.devices[0] | "\(.name) \(.total_bytes)"')" "mini 8589934592"
same "sites" "$(value '[.sites[] | select(.frames[0].module == "program")] | length')" 4
same "stacks reach main's caller" "$(value '[.sites[] | select([.frames[].module] | index("libc.so.6"))] | length')" 4
same "calls of cuMemAlloc_v2" "$(value '.coverage[] | select(.api == "cuMemAlloc_v2") | .calls')" 4
same "nothing dropped, ended in order" "$(value '.processes[0] | "\(.dropped_events) \(.ended)"')" "0 true"

# The library: what it needs, and that it gives the same names on both architectures.
names() { readelf --dyn-syms -W "$1" | awk '$5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" { print $8 }' | sort; }
same "exports" "$(names libtenure.so | sha256sum)" "$(names "$host_preload" | sha256sum)"
same "exports are there" "$(names libtenure.so | grep -cx 'dlsym\|cudaMalloc\|cuMemAlloc_v2')" 3
same "needs" "$(readelf -d libtenure.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | paste -sd' ')" "libc.so.6 libdl.so.2 libpthread.so.0"
newest=$(readelf -V libtenure.so | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
same "no symbol version above GLIBC_2.28 ($newest)" "$(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -1)" GLIBC_2.28
exit $((failures != 0))
