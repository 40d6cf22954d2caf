#!/bin/sh
# Keys of one program in several runs: under address randomisation, with another library loaded first, with modules that have no build-id, and with
# each way of finding libunwind. Arguments: keys_prog, the folder of the test libraries, libunwind.so.8 as shipped.
prog=$1
plugs=$2
unwind_dir=$(cd "$(dirname "$3")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
a=$plugs/libplug_a.so b=$plugs/libplug_b.so
na=$plugs/noid_a/libnoid.so nb=$plugs/noid_b/libnoid.so

check() { # NAME, then a command that must succeed
    name=$1
    shift
    if "$@"; then
        echo "ok $name"
    else
        echo "not ok $name"
        failed=1
    fi
}
# The keys alone, in order of name.
keys() { grep '^site' "$1" | sort; }
same() { [ -s "$work/$1" ] && keys "$work/$1" >"$work/x" && keys "$work/$2" >"$work/y" && [ -s "$work/x" ] && cmp -s "$work/x" "$work/y"; }
key_of() { awk -v n="$2" '$1 == "site" && $2 == n { print $3 }' "$work/$1"; }
line() { grep -qx "$2" "$work/$1"; }
all_different() { [ "$(keys "$work/$1" | awk '{ print $3 }' | sort -u | wc -l)" -eq "$(keys "$work/$1" | wc -l)" ]; }
moved() { ! cmp -s "$work/at1" "$work/at2"; }

"$prog" - "$a" "$b" "$na" >"$work/run1"
"$prog" - "$a" "$b" "$na" >"$work/run2"
check started line run1 'start 0'
check same_keys_in_two_runs same run1 run2
check six_chains_six_keys all_different run1
KEYS_VERBOSE=1 "$prog" - "$a" >"$work/v1"
KEYS_VERBOSE=1 "$prog" - "$a" >"$work/v2"
grep '^at' "$work/v1" >"$work/at1"
grep '^at' "$work/v2" >"$work/at2"
if [ "$(cat /proc/sys/kernel/randomize_va_space)" != 0 ]; then
    check addresses_differ_between_runs moved
fi

"$prog" - "$na" "$b" "$a" >"$work/order"
check same_keys_in_another_loading_order same run1 order
LD_PRELOAD=$nb "$prog" - "$a" "$b" "$na" >"$work/preload"
check same_keys_behind_an_unrelated_library same run1 preload

"$prog" - "$nb" >"$work/other_code"
differs() { [ -n "$(key_of other_code libnoid.so)" ] && [ "$(key_of other_code libnoid.so)" != "$(key_of run1 libnoid.so)" ]; }
check no_build_id_and_other_code_is_another_key differs
mkdir "$work/moved" && cp "$na" "$work/moved/libnoid.so"
"$prog" - "$work/moved/libnoid.so" >"$work/copied"
equal_noid() { [ -n "$(key_of copied libnoid.so)" ] && [ "$(key_of copied libnoid.so)" = "$(key_of run1 libnoid.so)" ]; }
check no_build_id_in_another_folder_is_the_same_key equal_noid

# Where libunwind comes from: beside us, then the variable, then the system's.
"$prog" "$unwind_dir" "$a" "$b" "$na" >"$work/beside"
check shipped_copy_is_used line beside "unwinder $unwind_dir/libunwind.so.8"
check shipped_copy_gives_the_same_keys same run1 beside
TENURE_LIBUNWIND=$unwind_dir/libunwind.so.8 "$prog" "$work" >"$work/by_variable"
check variable_is_used line by_variable "unwinder $unwind_dir/libunwind.so.8"
check a_failed_attempt_leaves_no_dlerror sh -c '! grep -q dlerror "$1"' sh "$work/by_variable"

# A system without liblzma: a file of that name that is no library stands in the loader's way.
mkdir "$work/nolzma"
echo broken >"$work/nolzma/liblzma.so.5"
LD_LIBRARY_PATH=$work/nolzma "$prog" "$unwind_dir" "$a" "$b" "$na" >"$work/lzma"
check shipped_liblzma_is_used line lzma "unwinder $unwind_dir/libunwind.so.8"

# No libunwind anywhere: one without the function stands in front of the system's.
LD_LIBRARY_PATH=$plugs/decoy "$prog" "$work" "$a" >"$work/none"
check without_libunwind_start_says_so line none 'start -1'
own_walk() { [ "$(awk '$1 == "site" && int($5 / 2) % 2 == 1' "$work/none" | wc -l)" -eq 4 ]; }
check without_libunwind_sites_are_marked own_walk
LD_LIBRARY_PATH=$plugs/decoy "$prog" "$work" "$a" >"$work/none2"
check own_walk_is_stable_too same none none2
exit $failed
