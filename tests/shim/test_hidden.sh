#!/bin/sh
# A program that empties its environment is recorded all the same; one whose CUDA stands in a namespace of its own is not, and the
# report says so.
# shellcheck source=tests/shim/lib.sh
. "$1"

runtime=$LIB/libcudart.so.13
for how in clearenv namespace; do
    LD_LIBRARY_PATH=$LIB "$BIN/prog_hidden" $how "$runtime" >bare.out 2>bare.err
    "$BIN/tenure" record -q -o run.$how -- env LD_LIBRARY_PATH="$LIB" "$BIN/prog_hidden" $how "$runtime" >record.out 2>record.err
    same ${how}_output "$(cat record.out record.err)" "$(cat bare.out bare.err)"
    same ${how}_found "$(cut -d' ' -f1 bare.out)" 'found=1'
done
same clearenv_allocations "$(total run.clearenv allocs)" 1
"$BIN/tenure" report run.namespace | tr -s ' \n' ' ' >report.out
same namespace_named "$(grep -c 'libcudart.so.13 stands in a namespace of its own (dlmopen)' report.out)" 1

finish
