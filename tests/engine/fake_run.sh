# shellcheck shell=bash
# How the tests of this folder run the engine on the fake card: a 32 607 MiB
# card with 1680 MiB of context, and the small matrix library. Sourced, never
# run; the caller sets ENGINE to the program and FAKE to the folder of the fake
# libraries.

WORK=$(mktemp -d "${TEST_TMPDIR:-${TMPDIR:-/tmp}}/engine.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
BAD=0

# run_engine NAME [VARIABLE=VALUE...] -- ARGUMENT...: leaves NAME.out, NAME.err
# and what the card counted, NAME.stats, in $WORK; returns the engine's code.
run_engine() {
  local name=$1 vars=()
  shift
  while [ "$1" != -- ]; do
    vars+=("$1")
    shift
  done
  shift
  env LD_LIBRARY_PATH="$FAKE${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ENGINE_BLAS=libfakeblas.so \
    FAKEGPU_MEM_MIB=32607 FAKEGPU_CONTEXT_MIB=1680 FAKEGPU_STATS="$WORK/$name.stats" "${vars[@]}" \
    "$ENGINE" "$@" >"$WORK/$name.out" 2>"$WORK/$name.err" </dev/null
}

ok() { echo "ok $1"; }

not_ok() {
  echo "not ok $1: $2"
  # shellcheck disable=SC2034 # read by those that source this
  BAD=1
}

# field FILE LINE_START KEY: the value of KEY=... in the first line that starts so; nothing if there is none.
field() {
  sed -n "s/^$2\(.* \)\{0,1\}$3=\([^ ]*\).*/\2/p" "$1" | head -n 1
}

# calls NAME FUNCTION: how often the card's driver was asked for FUNCTION.
calls() {
  local n
  n=$(grep -o "\"$2\":[0-9]*" "$WORK/$1.stats" | head -n 1)
  echo "${n##*:}"
}

# stat NAME KEY: a figure of device 0.
stat() {
  local n
  n=$(grep -o "\"$2\":[0-9]*" "$WORK/$1.stats" | head -n 1)
  echo "${n##*:}"
}

at_least() { [ -n "$1" ] && [ "$1" -ge "$2" ]; }
