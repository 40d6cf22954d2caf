#!/bin/bash
# Builds the GPU programs into OUTDIR with gcc and the CUDA Toolkit at CUDA_HOME (default /usr/local/cuda).
# Needs no GPU, no nvcc and no Bazel; what is built on one machine runs on another with the same or a newer glibc.
# No program gets a library search path of its own: LD_LIBRARY_PATH decides which libcudart and libcuda it meets.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: tests/gpu/build.sh OUTDIR" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
cc=${CC:-gcc}
mkdir -p "$1"
out=$(cd "$1" && pwd)

first_existing() {
	for path in "$@"; do
		if [ -e "$path" ]; then
			echo "$path"
			return 0
		fi
	done
	echo "build.sh: none of these exists (set CUDA_HOME to a CUDA Toolkit): $*" >&2
	return 1
}

target=$cuda/targets/$(uname -m)-linux
runtime_header=$(first_existing "$cuda/include/cuda_runtime_api.h" "$target/include/cuda_runtime_api.h")
cupti_header=$(first_existing "$cuda/include/cupti.h" "$cuda/extras/CUPTI/include/cupti.h" "$target/include/cupti.h")
cublas_header=$(first_existing "$cuda/include/cublas_v2.h" "$target/include/cublas_v2.h")
cudart_static=$(first_existing "$cuda/lib64/libcudart_static.a" "$target/lib/libcudart_static.a")
cudart=$(first_existing "$cuda/lib64/libcudart.so.13" "$target/lib/libcudart.so.13")
cublas=$(first_existing "$cuda/lib64/libcublas.so.13" "$target/lib/libcublas.so.13")

flags="-std=c17 -O2 -g -Wall -Wextra -Werror"
includes="-isystem $(dirname "$runtime_header") -isystem $(dirname "$cublas_header") -isystem $(dirname "$cupti_header")"
# cuBLAS brings its own dependencies by its own search path; the linker need not find them.
late="-Wl,--allow-shlib-undefined"

build() {
	echo "$(basename "$3"): $*"
	"$@"
}

cd "$here"
build $cc -o "$out/cublas_gemm_static" $flags $includes cublas_gemm.c "$cudart_static" "$cublas" $late -ldl -lrt -lpthread
build $cc -o "$out/cublas_gemm_shared" $flags $includes cublas_gemm.c "$cudart" "$cublas" $late
# tenure.h and this folder, from the root of the sources or of the stage.
engine="serving_engine.c -I../.."
build $cc -o "$out/serving_engine_static" $flags $includes $engine "$cudart_static" -ldl -lrt -lpthread
build $cc -o "$out/serving_engine_shared" $flags $includes $engine "$cudart" -ldl
build $cc -o "$out/facts" $flags $includes facts.c facts_outputs.c facts_context.c facts_resolver.c facts_ranges.c facts_bounds.c \
	facts_async.c facts_capture.c facts_vmm.c "$cudart" -ldl -lpthread
build $cc -o "$out/safe_calls" $flags $includes safe_calls.c safe_calls_table.c -ldl -lpthread
build $cc -o "$out/libcupti_counter.so" $flags -fPIC -shared $includes cupti_counter.c -ldl -lpthread
du -sh "$out"
