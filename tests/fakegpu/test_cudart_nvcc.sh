#!/bin/sh
# Runs the program that nvcc compiled, with the shared and the static fake runtime.
#
# usage: test_cudart_nvcc.sh SHARED STATIC
set -u
failed=0
for program in "$1" "$2"; do
    echo "# $(basename "$program")"
    "$program" || failed=1
done
exit $failed
