#!/bin/bash
# usage: test_run.sh RUN GENERATED TENURE LIBTENURE LIBCUDA LIBCUDART PLANTED
# The comparison can fail: a shim with a planted fault is noticed, the program shrinks to a few operations, and the
# printed command shows the difference again. A journal that counts otherwise than the program is noticed too.
here=$PWD
run=$here/$1 generated=$here/$2 tenure=$here/$3 planted=$here/$7
export TENURE_LIB=$here/$4
fake=$here/$(dirname "$5")
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/run.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

ok() { echo "ok $1"; }
not_ok() {
  echo "not ok $1: $2"
  sed 's/^/# /' "$work/out"
  bad=1
}
check() { # NAME WHY COMMAND...
  local name=$1 why=$2
  shift 2
  if "$@"; then ok "$name"; else not_ok "$name" "$why"; fi
}

bash "$run" --generated "$generated" --tenure "$tenure" --fake "$fake" --total-ops 2000 --seeds 1 --first-seed 9 \
  --instead "$planted" >"$work/out" 2>&1
rc=$?
# The seed's own lines are indented from here on: they are not this test's results.
check planted_fault_fails "exit code $rc" [ $rc = 1 ]
check planted_fault_is_named "no line says so" grep -q '^not ok seed.9: differs from native' "$work/out"
check last_line "the last line is another" [ "$(tail -n 1 "$work/out")" = "0 passed, 1 failed" ]
small=$(sed -n 's/^  \([0-9]*\) operations are enough.*/\1/p' "$work/out")
check shrinks "to '$small' operations" [ "${small:-999}" -le 10 ]
command=$(sed -n 's/^  repeat: //p' "$work/out")
export LD_LIBRARY_PATH=$fake FAKEGPU_DEVICES=2
# The command is a line of plain words.
# shellcheck disable=SC2086
{
  $command >"$work/native" 2>&1
  LD_PRELOAD=$planted $command >"$work/planted" 2>&1
}
check command_runs "it prints no hash" grep -q '^hash=' "$work/native"
check command_repeats "the two are the same" bash -c '! cmp -s "$1" "$2"' - "$work/native" "$work/planted"
check every_operation_is_listed "not $small lines" [ "$(grep -c '^[0-9]' "$work/native")" = "$small" ]

# Without the fault the same seed passes.
bash "$run" --generated "$generated" --tenure "$tenure" --fake "$fake" --total-ops 2000 --seeds 1 --first-seed 9 >"$work/out" 2>&1
rc=$?
check no_fault_passes "exit code $rc" [ $rc = 0 ]
# A program acts on fewer operations than it draws: a second seed makes up for what the first lacked.
sum=$(sed -n 's/^operations: \([0-9]*\) in.*/\1/p' "$work/out")
check counts_operations "the sum is '$sum'" [ "${sum:-0}" -ge 2000 ]
check adds_seeds "seed 10 is missing" grep -q '^ok seed.10 ' "$work/out"

# A program that counts a block more than there is: a wrapper adds to what it prints, natively and recorded alike.
cat >"$work/liar" <<WRAPPER
#!/bin/bash
"$generated" "\$@" | sed 's/^live.device=/&1/'
WRAPPER
chmod +x "$work/liar"
bash "$run" --generated "$work/liar" --tenure "$tenure" --fake "$fake" --total-ops 500 --seeds 1 --first-seed 9 >"$work/out" 2>&1
rc=$?
check wrong_count_fails "exit code $rc" [ $rc = 1 ]
check wrong_count_is_named "no line says so" grep -q '^not ok seed.9: the journal (live.device=' "$work/out"

# A program whose native runs differ is named unstable, not different.
cat >"$work/moody" <<WRAPPER
#!/bin/bash
"$generated" "\$@"; echo "now=\$\$"
WRAPPER
chmod +x "$work/moody"
bash "$run" --generated "$work/moody" --tenure "$tenure" --fake "$fake" --total-ops 500 --seeds 1 --first-seed 9 >"$work/out" 2>&1
check unstable_is_named "no line says so" grep -q '^not ok seed.9: unstable' "$work/out"
exit $bad
