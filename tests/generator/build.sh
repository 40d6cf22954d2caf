#!/usr/bin/env bash
# Builds the generated programs' executable and the shim with planted faults into OUTDIR, with gcc and the CUDA
# Toolkit at CUDA_HOME (default /usr/local/cuda). Needs no GPU, no nvcc and no Bazel; runs on another machine with the
# same or a newer glibc. LD_LIBRARY_PATH decides which libcudart and libcuda it meets.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: tests/generator/build.sh OUTDIR" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
mkdir -p "$1"
out=$(cd "$1" && pwd)
library=$cuda/lib64/libcudart.so.13
[ -e "$library" ] || library=$cuda/targets/$(uname -m)-linux/lib/libcudart.so.13
if [ ! -e "$library" ]; then
  echo "build.sh: no libcudart.so.13 below $cuda (set CUDA_HOME to a CUDA Toolkit)" >&2
  exit 1
fi
flags="-std=c17 -O2 -g -Wall -Wextra -Werror -isystem $cuda/include -I$here/../.."
cd "$here"
# shellcheck disable=SC2086 # the flags are words
${CC:-gcc} $flags -o "$out/generated" main.c driver.c observe.c ops.c places.c do_*.c "$library" -ldl -lpthread
# shellcheck disable=SC2086
${CC:-gcc} $flags -fPIC -shared -o "$out/libplanted_fault.so" planted_fault.c -ldl
