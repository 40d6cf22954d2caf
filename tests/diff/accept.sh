#!/bin/bash
# accept.sh DIFF.TAR.GZ: takes the golden text that `run gpu -o OUT` brought from a card into golden/, except of programs that
# ran out of time there, and takes its names out of golden/PENDING. What changed is for `git diff` to show.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: tests/diff/accept.sh OUT/diff.tar.gz" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$work" -xzf "$1"
taken=0
for file in "$work"/diff/golden/*.txt; do
	name=$(basename "$file" .txt)
	if grep -qx 'exit=124' "$file"; then
		echo "$name ran out of time: left as it was"
		continue
	fi
	cp "$file" "$here/golden/"
	if [ -e "$here/golden/PENDING" ]; then
		grep -vx "$name" "$here/golden/PENDING" >"$work/pending" || true
		cp "$work/pending" "$here/golden/PENDING"
	fi
	taken=$((taken + 1))
done
echo "$taken taken, $(grep -c . "$here/golden/PENDING" || true) pending"
