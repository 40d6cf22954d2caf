#!/bin/sh
# libtenure.so loads and records where glibc is older than here: in a root of an older Debian, made once by debootstrap from the mirror that apt
# is set up with and kept under the user's cache. Without root rights, debootstrap or a mirror the test says so and passes.
# shellcheck source=tests/shim/lib.sh
. "$1"
suites='buster bullseye' # 2.28, 2.31

# The first Debian mirror in apt's own lists.
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)*\([^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    grep -E '/debian/?$' | head -n 1)
home=${HOME:-$(getent passwd "$(id -u)" | cut -d : -f 6)}
roots=${XDG_CACHE_HOME:-$home/.cache}/tenure/roots

stop() {
    skip older_glibc "$1"
    exit 0
}
[ "$(id -u)" = 0 ] || stop 'a root folder can only be made and entered by root'
command -v debootstrap >/dev/null || stop 'debootstrap is not installed'
unshare -m true 2>/dev/null || stop 'no mount namespace is to be had here'
[ -n "$mirror" ] || stop 'apt knows no Debian mirror'
mkdir -p "$roots" || stop "$roots cannot be made"

# Makes the root under another name first, so that one that was interrupted is never taken for whole.
make_root() { # SUITE
    [ -d "$roots/$1" ] && return 0
    "/usr/lib/apt/apt-helper" -o Acquire::http::Timeout=10 -o Acquire::Retries=0 download-file "$mirror/dists/$1/Release" "$WORK/Release.$1" >"$WORK/mirror.$1" 2>&1 || return 1
    rm -rf "$roots/$1.part"
    timeout 170 debootstrap --variant=minbase "$1" "$roots/$1.part" "$mirror" >"$WORK/debootstrap.$1" 2>&1 || return 1
    rm -rf "$roots/$1.part/var/cache/apt" "$roots/$1.part/var/lib/apt/lists"
    mv "$roots/$1.part" "$roots/$1"
}

tried=
for suite in $suites; do
    if ! make_root $suite; then
        echo "note: no $suite from $mirror: $(tail -n 1 "$WORK/debootstrap.$suite" "$WORK/mirror.$suite" 2>/dev/null | grep -v '^==' | grep . | head -n 1)"
        continue
    fi
    root=$roots/$suite
    version=$(chroot "$root" ldd --version 2>/dev/null | sed -n '1s/.* //p')
    [ -n "$version" ] || { not_ok "${suite}_runs" 'ldd --version printed nothing'; continue; }
    tried="$tried $suite($version)"
    # A folder of this test's own in the root, since several tests may use it at once.
    box=$(mktemp -d "$root/tmp/tenure-XXXXXX") || exit 1
    trap 'rm -rf "$box" "$WORK"' EXIT
    inside=/tmp/$(basename "$box")
    mkdir "$box/run"
    cp -L "$LIB"/*.so* "$box/"
    cp -L "$MINI/libcuda.so.1" "$BIN/prog_old" "$box/"
    # With /proc, as any container has it, in a mount namespace that goes away with the command.
    in_root() { unshare -m sh -c 'mount -t proc proc "$0/proc" 2>/dev/null; exec chroot "$0" "$@"' "$root" /usr/bin/env LD_LIBRARY_PATH=$inside LD_PRELOAD=$inside/libtenure.so TENURE_RUN=$inside/run "$@" 2>&1; }

    same "${suite}_true" "$(in_root /bin/true):$?" :0
    same "${suite}_true_writes_nothing" "$(ls -A "$box/run")" ''
    holds "${suite}_library_is_loaded" "$(in_root /bin/cat /proc/self/maps; in_root /bin/sh -c 'LD_TRACE_LOADED_OBJECTS=1 /bin/true')" '*libtenure.so*'
    same "${suite}_natively" "$(chroot "$root" /usr/bin/env LD_LIBRARY_PATH=$inside $inside/prog_old 2>&1; echo $?)" 'errors 0
5'
    same "${suite}_recorded" "$(in_root $inside/prog_old; echo $?)" 'errors 0
5'
    sum=$(totals "$box/run")
    same "${suite}_journal" "$(field "$sum" journals) $(field "$sum" ended) $(field "$sum" allocs) $(field "$sum" frees) $(field "$sum" dropped) $(field "$sum" no_site)" '1 1 10 9 0 0'
    "$BIN/tenure" report "$box/run" >report.$suite 2>&1
    same "${suite}_report" $? 0
    holds "${suite}_sites_are_the_programs" "$(cat report.$suite)" '*prog_old+0x*'
    # libunwind is this machine's and needs its glibc, so the walk may be our own there: then the report says so.
    "$BIN/tenure" report --full "$box/run" | grep -iE 'unwind|frame pointer' | sed "s/^ */note: in $suite: /" | head -n 2
    rm -rf "$box"
    break
done
[ -n "$tried" ] || stop "the mirror $mirror offers none of: $suites"
echo "ran in:$tried"
finish
