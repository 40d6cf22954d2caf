#!/bin/sh
# The fake runtime's export list against the toolkit's: same file name, same
# symbol version, nothing that the real one lacks, and what is left out is
# exactly the list in golden/cudart_left_out.txt (graphics interoperability,
# textures, external semaphores, log callbacks, deprecated names).
#
# usage: test_cudart_exports.sh FAKE REAL LEFT_OUT [libfakecudart_static.a]
set -u
fake=$1 real=$2 left_out=$3 archive=${4-}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0

report() {
    if [ "$1" -eq 0 ]; then echo "ok $2"; else echo "not ok $2"; failed=1; fi
}

names() { nm -D --defined-only "$1" | awk '$2 == "T" {print $3}'; }

[ "$(readelf -d "$fake" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" = libcudart.so.13 ]
report $? soname

names "$fake" | grep -v '@@libcudart\.so\.13$' > "$tmp/unversioned"
[ ! -s "$tmp/unversioned" ]
report $? every_name_has_the_version_node

names "$fake" | sed 's/@.*//' | sort > "$tmp/fake"
names "$real" | sed 's/@.*//' | sort > "$tmp/real"
[ -s "$tmp/fake" ] && [ -s "$tmp/real" ]
report $? both_lists_were_read

comm -23 "$tmp/fake" "$tmp/real" > "$tmp/extra"
[ ! -s "$tmp/extra" ] || { sed 's/^/  not in the toolkit: /' "$tmp/extra"; false; }
report $? nothing_of_our_own_is_exported

comm -13 "$tmp/fake" "$tmp/real" > "$tmp/missing"
diff -u "$left_out" "$tmp/missing"
report $? what_is_left_out_is_written_down

! readelf -d "$fake" | grep -q 'NEEDED.*libcuda\.'
report $? the_driver_is_not_needed

if [ -n "$archive" ]; then
    readelf -sW "$archive" 2> /dev/null | awk '$5 == "GLOBAL" && $7 != "UND" && $6 != "HIDDEN" {print $8}' > "$tmp/visible"
    [ ! -s "$tmp/visible" ] || { sed 's/^/  visible: /' "$tmp/visible"; false; }
    report $? every_symbol_of_the_static_copy_is_hidden
fi
exit $failed
