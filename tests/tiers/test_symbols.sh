#!/usr/bin/env bash
# What the library asks of its process: a few functions of libc, none newer than glibc 2.17, no stdio; and memory for its own structures from one
# place alone, which is not asked where the caller brought another.
set -u
cd "${TEST_SRCDIR:-.}/${TEST_WORKSPACE:-.}" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
check() {
  if [ -z "$2" ]; then
    echo "ok $1"
  else
    echo "not ok $1: $2"
    bad=1
  fi
}
command -v gcc >/dev/null || { echo "skip symbols: no gcc"; exit 0; }

library=tiers/libtiers.a
[ -e tiers/libtiers.pic.a ] && library=tiers/libtiers.pic.a
gcc -shared -o "$work/tiers.so" -Wl,--whole-archive $library -Wl,--no-whole-archive -lpthread 2>"$work/said" ||
  { echo "not ok symbols: it does not link: $(head -n 3 "$work/said")"; exit 1; }

# name version, of what is not defined in it and not weak
readelf --dyn-syms -W "$work/tiers.so" | awk '$7 == "UND" && $5 != "WEAK" && $8 != "" { sub(/@+/, " ", $8); print $8 }' | sort >"$work/wanted"
[ -s "$work/wanted" ] || { echo "not ok symbols: it wants nothing, which cannot be"; exit 1; }
known='^(mem(cpy|move|set)|__mem(cpy|move|set)_chk|__stack_chk_fail|realloc|free|pthread_mutex_(init|destroy|lock|unlock)|sched_yield|syscall) '
check a_few_functions_of_libc "$(grep -vE "$known" "$work/wanted" | tr '\n' ' ')"
check none_newer_than_2_17 "$(awk '{ sub(/GLIBC_/, "", $2); split($2, v, "."); if (v[1] != 2 || v[2] > 17) print $1, $2 }' "$work/wanted" | tr '\n' ' ')"
check memory_from_one_place "$(nm -A $library 2>/dev/null | awk '$(NF - 1) == "U" && $NF ~ /^(malloc|calloc|realloc|free|mmap)$/' | grep -v 'metadata[^:]*\.o:' | tr '\n' ' ')"
exit $bad
