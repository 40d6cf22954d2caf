#!/bin/bash
# CuPy, JAX with and without preallocation, Triton and torch.compile on a GPU: each runs bare and recorded, with the same standard
# output, and once more beside CUPTI's counter: the journal's calls per allocation and free API are CUPTI's. A framework that is
# not installed is a failure: nothing was seen of it. STAGE and OUT as for run_stand.sh. About five minutes.
# Prints "ok NAME" or "not ok NAME: why" per check and "N passed, M failed" last; exit code 1 if any failed.
set -u
export STAND_SECONDS=${STAND_SECONDS:-420}
# shellcheck source=tests/gpu/suite.sh
. "$(dirname "$(readlink -f "$0")")/suite.sh"

# framework NAME LEVELS LIMIT PROGRAM [VARIABLE=VALUE...]
framework() {
	local name=$1 levels=$2 limit=$3 program=$here/frameworks/$4 path=${LD_LIBRARY_PATH:-}
	shift 4
	bare_and_recorded "$name" "$limit" "$path" env "$@" python3 "$program"
	counted "$name" "$levels" "$limit" "$path" env "$@" python3 "$program"
}

framework cupy driver 60 cupy_arrays.py
framework cupy_async driver 60 cupy_async.py
framework triton driver,runtime 60 triton_add.py
framework torch_compile driver,runtime 120 torch_compile.py
# Where JAX's own allocator takes what it needs, and where it takes three quarters of the card in one handle.
framework jax driver 80 jax_product.py XLA_PYTHON_CLIENT_PREALLOCATE=false
framework jax_preallocated driver 80 jax_product.py XLA_PYTHON_CLIENT_PREALLOCATE=true

finish
