#!/bin/bash
# Builds the differential programs into OUTDIR with gcc, g++ and the CUDA Toolkit at CUDA_HOME (default /usr/local/cuda), and
# copies the scripts and golden text beside them, so that OUTDIR can be carried to a GPU machine and run there. Needs no GPU,
# no nvcc and no Bazel. No program gets a library search path of its own: LD_LIBRARY_PATH decides which libcudart and libcuda
# it meets. Only libouter.so has a RUNPATH, because that is what it is for.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: tests/diff/build.sh OUTDIR" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
mkdir -p "$1/inner" "$1/golden"
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
header=$(first_existing "$cuda/include/cuda_runtime_api.h" "$target/include/cuda_runtime_api.h")
cudart=$(first_existing "$cuda/lib64/libcudart.so.13" "$target/lib/libcudart.so.13" "$cuda/lib/libcudart.so.13")
archive=$(first_existing "$cuda/lib64/libcudart_static.a" "$target/lib/libcudart_static.a" "$cuda/lib/libcudart_static.a")
stub=$(first_existing "$cuda/lib64/stubs/libcuda.so" "$target/lib/stubs/libcuda.so" "$cuda/lib/stubs/libcuda.so")
cublas=$(first_existing "$cuda/lib64/libcublas.so.13" "$target/lib/libcublas.so.13")
cublas_header=$(first_existing "$cuda/include/cublas_v2.h" "$target/include/cublas_v2.h")
flags="-O2 -g -Wall -Wextra -Werror -isystem $(dirname "$header") -isystem $(dirname "$cublas_header")"
c="${CC:-gcc} -std=c17 $flags"
cxx="${CXX:-g++} -std=c++17 $flags"
static=("$archive" "$stub" -ldl -lrt -lpthread)
# cuBLAS brings its own dependencies by its own search path; the linker need not find them.
late="-Wl,--allow-shlib-undefined"

cd "$here"
for source in *.c; do
	name=${source%.c}
	case $name in
	lib_* | gemm) ;;
	loader) $c -o "$out/$name" "$source" -ldl ;;
	per_thread) $c -DCUDA_API_PER_THREAD_DEFAULT_STREAM -o "$out/$name" "$source" "$cudart" "$stub" -ldl -lpthread ;;
	*) $c -o "$out/$name" "$source" "$cudart" "$stub" -ldl -lpthread ;;
	esac
done
for name in copies freed_copies launches runtime_rest stream_calls; do
	$c -DCUDA_API_PER_THREAD_DEFAULT_STREAM -o "$out/${name}_thread" $name.c "$cudart" "$stub" -ldl -lpthread
done
(cd ../gpu && $c -o "$out/facts" facts.c facts_*.c "$cudart" -ldl -lpthread &&
	$c -o "$out/safe_calls" safe_calls.c safe_calls_table.c -ldl -lpthread)
for source in *.cc; do
	$cxx -o "$out/${source%.cc}" "$source" "$cudart" "$stub" -ldl -lpthread
done
for name in oom_retry capture_modes graph_memory cross_level forks; do
	$c -o "$out/${name}_static" $name.c "${static[@]}"
done
$cxx -o "$out/tls_late_static" tls_late.cc "${static[@]}"
$c -o "$out/gemm_static" gemm.c "$cublas" "${static[@]}" $late
$c -o "$out/gemm_shared" gemm.c "$cublas" "$cudart" "$stub" $late

$c -fPIC -shared -o "$out/liblate.so" lib_late.c "$cudart"
$c -fPIC -shared -o "$out/libwork.so" lib_work.c "$cudart" "$stub"
cp "$out/libwork.so" "$out/inner/libsibling.so"
# shellcheck disable=SC2016 # the loader expands it
$c -fPIC -shared -o "$out/libouter.so" lib_outer.c -ldl -Wl,-rpath,'$ORIGIN/inner',--enable-new-dtags
$c -fPIC -shared -o "$out/libnames.so" lib_names.c -ldl
$c -fPIC -shared -o "$out/libinterpose.so" lib_interpose.c -ldl
cp ./*.py ./*.rules run safe_calls.sh programs.txt "$out/"
cp golden/* "$out/golden/"
du -sh "$out"
