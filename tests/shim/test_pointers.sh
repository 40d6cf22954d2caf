#!/bin/sh
# A function's address is the same whichever way a program comes to it.
# shellcheck source=tests/shim/lib.sh
. "$1"
native native "$BIN/prog_pointers"
same natively "$rc:$(grep -c 'default 1 self 1 handle 1 again 1' native.out):$(tail -n 1 native.out)" '0:3:calls 0 0'
recorded record run "$BIN/prog_pointers"
same_output the_same_under_record native record
same calls_through_them_are_recorded "$(total run allocs):$(total run frees)" 1:1
finish
