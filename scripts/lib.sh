# shellcheck shell=bash
# What the scripts share: where the project is, how they speak, and Bazel
# called the same way everywhere. Sourced, never run.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
# The scripts and Bazel work in other folders than the caller's. Exported it
# stays, where the caller had it so; else Bazel has the same default.
case $CUDA_HOME in
  /*) ;;
  *) CUDA_HOME=$(realpath -ms -- "$CUDA_HOME") ;;
esac

say() { printf '%s\n' "$*"; }

# One sentence on the error stream, then the exit code given (1 by default).
die() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit "${2:-1}"
}

# Usage errors.
usage() {
  printf 'usage: %s\n' "$1" >&2
  exit 2
}

# Bazel in the project's folder, with no terminal tricks where there is no
# terminal to play them on and never anything on its standard input.
run_bazel() {
  local command=$1
  shift
  local plain=()
  if [ ! -t 1 ] || [ -n "${CI:-}" ]; then
    plain=(--color=no --curses=no --noshow_progress)
  fi
  (cd "$ROOT" && exec bazel "$command" "${plain[@]}" "$@" </dev/null)
}
