#!/usr/bin/env bash
# The allowlist: over, under, unlisted, stale and excluded files fail by name;
# --update makes it hold, in one step, without touching a comment.
set -uo pipefail

[ $# -eq 2 ] || { echo "usage: test_gate.sh CHECK TENURE" >&2; exit 2; }
TENURE=$(realpath -s "$2")
# shellcheck source=tests/cli/check.sh
. "$1"

src=$WORK/src list=$WORK/allow.txt
mkdir -p "$src/a" "$src/b"
echo 'void f(void) { cudaMalloc(&p, 1); cudaMalloc(&q, 1); cudaFree(p); }' >"$src/a/one.cu"
echo 'void g(void) { cudaHostAlloc(&p, 1, 0); }' >"$src/b/two.c"
echo 'int h;' >"$src/b/none.c"

census() { run "$TENURE" census "$src" --allowlist "$list" "$@"; }
# finding NAME CODE LINE: the last run gave CODE and printed exactly this finding.
finding() {
  same "$1.code" "$rc" "$2"
  same "$1" "$(grep -E '^(over|under|unlisted|stale|excluded):' <<<"$out")" "$3"
}

census
refused absent_list 2 "*allow.txt cannot be read: No such file or directory (make it with --update)"
census --update
same update.code "$rc" 0
holds update.says "$err" "*: 2 added, 0 changed, 0 removed, 0 as they were"
same update.list "$(grep -v '^#' "$list" | grep .)" $'2 1 a/one.cu\n1 0 b/two.c'
census
same holds.code "$rc" 0
holds holds.says "$out" "*allow.txt holds"

# The same from elsewhere, by another path to the same tree.
run env -C "$WORK" "$TENURE" census ./src/../src/ --allowlist allow.txt
same elsewhere.code "$rc" 0

echo 'void k(void) { cudaMalloc(&p, 1); }' >>"$src/a/one.cu"
census
finding over 1 "over: a/one.cu has 3 allocation calls, its budget is 2: take the new ones out, or raise the budget in review (--update)"
holds over.verdict "$out" "*allow.txt does not hold: 1 finding"
echo 'void f(void) { cudaMalloc(&p, 1); cudaMalloc(&q, 1); cudaFree(p); cudaFree(q); }' >"$src/a/one.cu"
census
finding over_free 1 "over: a/one.cu has 2 free calls, its budget is 1: take the new ones out, or raise the budget in review (--update)"
echo 'void f(void) { cudaMalloc(&p, 1); cudaFree(p); }' >"$src/a/one.cu"
census
finding under 1 "under: a/one.cu has 1 allocation call, its budget is 2: lower the budget (--update)"
echo '// void f(void) { cudaMalloc(&p, 1); cudaFree(p); }' >"$src/a/one.cu"
census
finding under_zero 1 "under: a/one.cu has 0 allocation calls, its budget is 2: lower the budget (--update)
under: a/one.cu has 0 free calls, its budget is 1: lower the budget (--update)"
echo 'void f(void) { cudaMalloc(&p, 1); cudaMalloc(&q, 1); cudaFree(p); }' >"$src/a/one.cu"
census
same as_before.code "$rc" 0

echo 'void n(void) { cudaFree(p); }' >"$src/b/new.h"
census
finding unlisted 1 "unlisted: b/new.h has 0 allocation and 1 free call, and is not listed: allocate elsewhere, or list the file in review (--update)"
rm "$src/b/new.h"
mv "$src/b/two.c" "$src/b/two.txt"
census
finding stale 1 "stale: b/two.c is listed on line 5, and is not there: remove the line (--update)"
mv "$src/b/two.txt" "$src/b/two.c"
census --exclude b
finding excluded 1 "excluded: b/two.c is listed on line 5, and is not among the files that are counted: count the file, or remove the line (--update)"
run "$TENURE" census "$src" --allowlist "$list" --exclude b --json
same json.code "$rc" 1
same json "$(jq -c '[.allowlist.holds, (.allowlist.findings[] | [.finding, .path, .list_line, .allowed_allocs, .allocs, .use])]' <<<"$out")" \
  '[false,["excluded","b/two.c",5,1,0,null]]'

# Comments, blank lines, order and mode stay; a second update changes no byte and not even the time.
cat >"$list" <<'END'
# The head of our list.
2 1 a/one.cu   # until step 5

# --- folder b
# gone since May
7 7 b/gone.c
# two is next
9 0 b/two.c # see #12
END
chmod 640 "$list"
echo 'void n(void) { cudaFree(p); }' >"$src/b/new.h"
echo 'void z(void) { cudaFree(p); }' >"$src/z.c"
census --update
same keeps.code "$rc" 0
holds keeps.says "$err" "*: 2 added, 1 changed, 1 removed, 1 as they were"
same keeps "$(cat "$list")" '# The head of our list.
2 1 a/one.cu   # until step 5

0 1 b/new.h
# --- folder b
# gone since May
# two is next
1 0 b/two.c # see #12
0 1 z.c'
same keeps.mode "$(stat -c %a "$list")" 640
touch -d 2001-01-01 "$list"
before=$(stat -c '%Y %i' "$list")
census --update
same twice.code "$rc" 0
same twice "$(stat -c '%Y %i' "$list")" "$before"
same no_leftovers "$(find "$WORK" -maxdepth 1 -name 'allow.txt?*' | wc -l)" 0

# Through a link, which stays one.
ln -s allow.txt "$WORK/link.txt"
rm "$src/z.c"
run "$TENURE" census "$src" --allowlist "$WORK/link.txt" --update
same link.code "$rc" 0
same link "$(readlink "$WORK/link.txt"), $(grep -c z.c "$list")" "allow.txt, 0"

# Names that a line could be misread by.
odd=$src/$'odd \t#\n"x\\'.c
echo 'void o(void) { cudaFree(p); }' >"$odd"
cp "$odd" "$src/with blank.c"
cp "$odd" "$src/back\\slash.c"
census --update
same odd.code "$rc" 0
same odd "$(grep -c '^0 1 "odd \\x09#\\x0a\\"x\\\\.c"$' "$list"), $(grep -c '^0 1 with blank.c$' "$list"), $(grep -c '^0 1 back\\slash.c$' "$list")" "1, 1, 1"
census
same odd.holds "$rc" 0
rm "$odd"
census
same odd.stale "$rc, $(grep -c '^stale: odd ?#?"x\\.c is listed' <<<"$out")" "1, 1"

# What is no list.
for text in 'x 1 a' '1 a.c' '1 2' '1 2 "a' '1 2 "a" b' '1 2 "\q"' '99999999999999999999999 1 a' '-1 0 a'; do
  printf '# head\n%s\n' "$text" >"$list"
  census
  refused "bad_line '$text'" 2 "*allow.txt:2: a line is ALLOCS FREES PATH, or a comment after #"
  census --update
  refused "bad_line_update '$text'" 2 "*allow.txt:2: a line is*"
done
printf '1 0 a\n2 0 b\n1 0 a\n' >"$list"
census
refused doubled 2 "*allow.txt:3: a stands in it already, on line 1"
run "$TENURE" census "$src" --update
refused update_alone 2 "*--update needs --allowlist FILE"
run "$TENURE" census "$src" --allowlist "$WORK/no/such/list" --update
refused no_folder 2 "*cannot be written: No such file or directory"
run "$TENURE" census "$src" --allowlist "$src" --update
refused folder_as_list 2 "*src cannot be read: Is a directory"

# Nothing is written while something could not be read.
printf '\377\376c\0' >"$src/utf16.c"
rm -f "$list"
census --update
refused unread 2 "*allow.txt is not updated, because not every file could be read"
same unread.list "$([ -e "$list" ] && echo there)" ""
finish
