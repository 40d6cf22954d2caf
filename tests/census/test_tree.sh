#!/usr/bin/env bash
# Which files of a tree are counted, what is said of the others, and the tables.
set -uo pipefail

[ $# -eq 2 ] || { echo "usage: test_tree.sh CHECK TENURE" >&2; exit 2; }
TENURE=$(realpath -s "$2")
# shellcheck source=tests/cli/check.sh
. "$1"

src=$WORK/src
mkdir -p "$src"/{deep/er,build,.git,.svn,none}
call='void f(void) { cudaMalloc(&p, 1); }'
for name in a.c a.cc a.cpp a.cxx a.cu a.cuh a.h a.hpp a.hxx a.inl a.ipp A.CU deep/er/x.c build/gen.c .git/x.c .svn/x.c; do
  echo "$call" >"$src/$name"
done
for name in a.py a.txt a.s c cu .c a.c~ a.cuda none/README.md; do
  echo "$call" >"$src/$name"
done

# counts NAME PATHS ARGUMENT...: the files with calls, on one line
counts() {
  local name=$1 wanted=$2
  shift 2
  run "$TENURE" census "$@" --json
  same "$name" "$(jq -r '[.files[].path] | join(" ")' <<<"$out")" "$wanted"
}
counts extensions "A.CU a.c a.cc a.cpp a.cu a.cuh a.cxx a.h a.hpp a.hxx a.inl a.ipp build/gen.c deep/er/x.c" "$src"
counts by_name "a.txt" "$src/a.txt"
counts exclude_folder "A.CU a.inl a.ipp" "$src" --exclude build --exclude 'a.[ch]*' --exclude 'deep/er'
counts exclude_path "A.CU a.c a.cc a.cu a.cuh a.cxx a.h a.hpp a.hxx a.inl a.ipp build/gen.c" "$src" --exclude 'deep/*.c' --exclude '*.cpp'
counts exclude_all "" "$src" --exclude '*'

# Several sources, overlapping: paths below their common folder, each file once.
counts overlap "build/gen.c deep/er/x.c" "$src/deep" "$src/build" "$src/deep/er" "$src/deep/er/x.c"
same common "$(jq -r .root <<<"$out")" "$(realpath "$src")"
counts one_folder "er/x.c" "$src/deep"
mkdir "$WORK/src2"
echo "$call" >"$WORK/src2/y.c"
counts neighbours "src/deep/er/x.c src2/y.c" "$src/deep" "$WORK/src2"

# Links: loops, doubles, dangling ones; a source that is one is followed.
mkdir "$WORK/links"
echo "$call" >"$WORK/links/real.c"
ln -s . "$WORK/links/loop"
ln -s ../links "$WORK/links/again"
ln -s real.c "$WORK/links/same.c"
ln -s nowhere.c "$WORK/links/dangling.c"
ln -s /etc/hostname "$WORK/links/text"
ln -s links "$WORK/to_links"
counts links "real.c" "$WORK/links"
same links_counted "$(jq .links_not_followed <<<"$out")" 3
counts link_as_source "real.c" "$WORK/to_links"
run "$TENURE" census "$WORK/links"
holds links_said "$out" "*1 file read, 1 with calls; 3 symbolic links not followed*"

# What cannot be counted: named, exit code 2, the rest is counted.
mkdir "$WORK/bad"
echo "$call" >"$WORK/bad/good.c"
printf '\377\376c\0u\0' >"$WORK/bad/utf16.c"
mkfifo "$WORK/bad/pipe.c"
mkdir "$WORK/bad/folder.c"
run "$TENURE" census "$WORK/bad"
same unread.code "$rc" 2
holds unread.rest "$out" "*allocation      1 line *"$'\n'"*Not read (1)"$'\n'"  utf16.c: it is UTF-16 text, which is not read"
same unread.said "$err" "tenure census: warning: $(realpath "$WORK/bad")/utf16.c is not counted: it is UTF-16 text, which is not read"
mkdir -p "$WORK/closed/folder"
echo "$call" >"$WORK/closed/file.c"
echo "$call" >"$WORK/closed/open.c"
chmod 0 "$WORK/closed/folder" "$WORK/closed/file.c"
without=() # root reads everything, unless it may not
[ "$(id -u)" != 0 ] || without=(setpriv "--bounding-set=-dac_override,-dac_read_search")
if "${without[@]}" true 2>/dev/null && ! "${without[@]}" cat "$WORK/closed/file.c" >/dev/null 2>&1; then
  run "${without[@]}" "$TENURE" census "$WORK/closed" --json
  same closed.code "$rc" 2
  same closed "$(jq -c '[[.files[].path], [.unread[] | [.path, .why]]]' <<<"$out")" \
    '[["open.c"],[["file.c","Permission denied"],["folder","Permission denied"]]]'
  same closed.lines "$(wc -l <"$WORK/.err")" 2
else
  echo "skip closed: this user reads everything"
fi
chmod 755 "$WORK/closed/folder"

# Figures: lines and calls, macros, wrappers, tables.
mkdir -p "$WORK/figures/sub"
cat >"$WORK/figures/a.cu" <<'END'
#define NEW(p) cudaMalloc(p, 4)
void *grab(size_t n);
void f() { cudaMalloc(&p, 1); cudaMalloc(&q, 1); cudaFree(p); hook(cudaFree); }
void g() { x = grab(3); y = grab(
   cudaMallocAsync(&p, 1, s)); NEW(&p); drop(p); }
END
printf 'int x = cudaMallocHost(\r\n&p, 1);\r\n' >"$WORK/figures/sub/b.h"
run "$TENURE" census "$WORK/figures" --api grab --api NEW --free drop --json
same figures.total "$(jq -c '.totals | [.files, .files_with_calls, .alloc, .free, .declarations, .mentions]' <<<"$out")" \
  '[2,2,{"lines":5,"calls":8,"in_macros":1},{"lines":2,"calls":2,"in_macros":0},2,1]'
same figures.apis "$(jq -c '[.apis[] | [.api, .use, .wrapper, .alloc.calls + .free.calls]]' <<<"$out")" \
  '[["cudaFree","free",false,1],["cudaMalloc","alloc",false,3],["cudaMallocAsync","alloc",false,1],["cudaMallocHost","alloc",false,1],["grab","alloc",true,2],["NEW","alloc",true,1],["drop","free",true,1]]'
same figures.folders "$(jq -c '[.folders[] | [.folder, .alloc.lines, .alloc.calls, .free.calls, .files_with_calls]]' <<<"$out")" \
  '[[".",4,7,2,1],["sub",1,1,0,1]]'
same figures.site "$(jq -c '.files[0].uses[-3] | [.line, .first_line, .last_line, .api, .kind, .in_macro, .member]' <<<"$out")" \
  '[5,4,5,"cudaMallocAsync","call",false,false]'
run "$TENURE" census "$WORK/figures" --api grab --stats --list
same text.code "$rc" 0
holds text.head "$out" "*2 files read, 2 with calls"$'\n'"  allocation      5 lines       7 calls"$'\n'"*of these calls, 1 stand in the body of a macro*"
holds text.list "$out" "*a.cu:1: cudaMalloc (in a macro)"$'\n'"a.cu:2: grab (declaration)"$'\n'"*a.cu:3: cudaFree (mention)*"
holds text.folder "$out" "*       1        1        0        0  sub"$'\n'"*"
mkdir "$WORK/empty"
run "$TENURE" census "$WORK/empty"
same empty "$rc, $(grep -c '0 files read, 0 with calls' <<<"$out")" "0, 1"

# A name that is no text in JSON, and none for a terminal.
echo "$call" >"$WORK/empty/"$'\377\033[2J.c'
run "$TENURE" census "$WORK/empty" --json
same odd_name "$(jq -r '.files[0].path' <<<"$out")" $'\xef\xbf\xbd\033[2J.c'
run "$TENURE" census "$WORK/empty" --stats
same no_escapes "$(grep -c $'\033' <<<"$out")" 0

# Wrong arguments.
run "$TENURE" census
refused nothing 2 "tenure census: no source given*"
run "$TENURE" census "$WORK/absent"
refused absent 2 "*absent cannot be counted: No such file or directory"
run "$TENURE" census "$WORK/bad/pipe.c"
refused pipe 2 "*pipe.c is neither a folder nor a file"
for name in '' 1a 'ns::f' 'a b' 'f()'; do
  run "$TENURE" census "$src" --api "$name"
  refused "api '$name'" 2 "*--api needs the bare name of a function or macro, not $name"
done
run "$TENURE" census "$src" --no-such
refused unknown 2 "*unknown option --no-such*"
run "$TENURE" census "$src" --runs
refused runs_alone 2 "*option --runs needs a value*"
run "$TENURE" census "$src" --runs "$WORK/absent"
refused absent_run 2 "*absent*"
run "$TENURE" census "$src" --runs "$WORK/empty"
refused empty_run 3 "*"
same full "$("$TENURE" census "$src" 2>&1 >/dev/full; echo $?)" $'tenure census: standard output cannot be written\n2'
run "$TENURE" help census
holds help "$out" "tenure census SRC...*"
finish
