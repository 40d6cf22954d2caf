#!/bin/bash
# The programs of run_tiers.sh on the fake card: the invariants of every backend, and what memory that grows in place keeps. Then on cards that
# refuse, which the programs must say.
# Arguments: tiers_suite tiers_vmm libcuda.so.1 tiers_peers
set -u
suite=$PWD/$1
vmm=$PWD/$2
peers=$PWD/$4
LD_LIBRARY_PATH=$(dirname "$PWD/$3")
export LD_LIBRARY_PATH
work=${TEST_TMPDIR:-$(mktemp -d)}
failed=0

"$suite" || failed=1
"$vmm" 4 1024 6 || failed=1

FAKEGPU_DEVICES=2 "$peers" || failed=1
if said=$("$peers") && [[ $said == *'skip peers: one card'* && $said != *ok\ * ]]; then
	echo "ok one_card_has_no_peers"
else
	echo "not ok one_card_has_no_peers: $said"
	failed=1
fi

# must_fail NAME LINE COMMAND...: the command fails, with a line that matches.
must_fail() {
	local name=$1 line=$2
	shift 2
	if "$@" >"$work/$name.out" 2>&1; then
		echo "not ok $name: it passed"
		failed=1
	elif grep -qE "$line" "$work/$name.out"; then
		echo "ok $name"
	else
		echo "not ok $name: it failed, but says nothing of $line"
		sed 's/^/  /' "$work/$name.out" | tail -n 20
		failed=1
	fi
}

must_fail a_commit_that_the_driver_refuses_is_noticed '^not ok vmm: commit: the backend is out of memory$' \
	env FAKEGPU_FAIL=cuMemCreate:3 "$vmm" 4 1024 6
must_fail a_reservation_that_the_driver_refuses_is_noticed '^not ok vmm: acquire_growable: ' \
	env FAKEGPU_FAIL=cuMemAddressReserve:2 "$vmm" 4 1024 6
must_fail a_full_card_is_noticed '^not ok vmm: commit: the backend is out of memory$' env FAKEGPU_MEM_MIB=560 "$vmm" 4 1024 6
exit $failed
