# shellcheck shell=bash
# Sourced by the tests of tests: plants bugs one by one, and wants a named test to fail with each. They run from the project's folder. Who tests
# other files than those of tiers/, in another folder, sets `sources` and `folder` before.

compiler=gcc
bad=0
sources=${sources:-tiers/*.c}
folder=${folder:-tests/tiers}
suite=$(basename "$0" .sh)
suite=${suite#test_}
command -v $compiler >/dev/null || { echo "skip $suite: no $compiler"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compile FILE OBJECT
compile() { $compiler -std=c17 -O1 -w -I. -Itests/tiers -c "$1" -o "$2"; }

# passes TEST: the test with the objects that are there now.
passes() {
  local objects=() one
  for one in "$work"/*.o; do
    case $one in */test_*) ;; *) objects+=("$one") ;; esac
  done
  $compiler "${objects[@]}" "$work/$1.o" -o "$work/program" -Wl,--wrap=_mark_point -lcheck -lsubunit -lm -lrt -lpthread -ldl 2>"$work/output" ||
    return 2
  timeout 60 "$work/program" >"$work/output" 2>&1
}

# begin TEST... -- FIXTURE...: compiles them and the library; the tests pass as long as nothing is planted.
begin() {
  local tests=() file
  while [ "$1" != -- ]; do
    tests+=("$1")
    shift
  done
  shift
  # shellcheck disable=SC2086 # patterns
  for file in third_party/check_marks.c $sources "${tests[@]/#/$folder/}" "${@/#/$folder/}"; do
    file=${file%.c}.c
    compile "$file" "$work/$(basename "$file" .c).o" || { echo "not ok $suite: $file does not compile"; exit 1; }
  done
  for file in "${tests[@]}"; do
    if passes "$file"; then
      echo "ok ${file}_as_it_is"
    else
      echo "not ok ${file}_as_it_is"
      tail -n 20 "$work/output"
      exit 1
    fi
  done
}

# mutant NAME FILE SED TEST: the test fails with what sed makes of the file, and that is another program than before.
mutant() {
  local name=$1 file=$2 object
  object=$work/$(basename "$file" .c).o
  sed -E "$3" "$file" >"$work/mutant.c"
  cp "$object" "$work/kept"
  if cmp -s "$file" "$work/mutant.c"; then
    echo "not ok $name: there is no such line any more"
    bad=1
  elif ! compile "$work/mutant.c" "$object"; then
    echo "not ok $name: it does not compile"
    bad=1
  else
    passes "$4"
    case $? in
      0) echo "not ok $name: $4 does not see it"; bad=1 ;;
      1 | 124) echo "ok $name" ;;
      *) echo "not ok $name: it ended otherwise"; bad=1 ;;
    esac
  fi
  cp "$work/kept" "$object"
}

finish() { exit "$bad"; }
