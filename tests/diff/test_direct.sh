#!/bin/sh
# The same where the runtime calls the driver past the hooks, as under Nsight Compute, and what has ended ends whoever uses it. Without
# `facts`, which would take as long as all the others together.
# shellcheck source=tests/diff/stage.sh
. "$1"
export FAKEGPU_DIRECT=1
# shellcheck disable=SC2046 # names, one word each
suite record -p -j 4 $(awk 'NF && $1 !~ /^#/ && $2 != "gpu" && $1 != "facts" { print $1 }' "$STAGE/bin/programs.txt")
