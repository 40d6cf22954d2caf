# shellcheck shell=sh
# Sourced after tests/shim/lib.sh by this folder's tests.

export PATH="$BIN:$PATH" TENURE_JOURNAL_MAX_MIB=64
export LD_LIBRARY_PATH=$LIB
unset TENURE_GUARD TENURE_SERVING_CALL TENURE_PLANNING_CALL NVTX_INJECTION64_PATH

# json RUN FILTER: of the report
json() { tenure report --json "$1" 2>/dev/null | jq -r "$2"; }
phases() { json "$1" '[.phases[] | .phase + (if .swap then ":" + (.swap|tostring) else "" end)] | join(" ")'; }
causes() { json "$1" '[.phases[].cause] | map(. // "none") | join(" ")'; }
marks() { json "$1" '[.marks[].mark] | join("|")'; }
serving() { json "$1" ".serving.$2"; }

# record RUN ARGUMENT... : in the background, its own lines to RUN.err; PID is tenure's
begin() {
    run=$1
    shift
    tenure record -o "$run" "$@" >"$run.out" 2>"$run.err" </dev/null &
    # shellcheck disable=SC2034 # the caller waits for it
    PID=$!
}
has_block() { ls "$1"/*.tnc >/dev/null 2>&1; }
program_of() { basename "$(ls "$1"/*.tnc | head -n 1)" .tnc | sed 's/.*-\([0-9]*\)-[0-9a-f]*$/\1/'; }
