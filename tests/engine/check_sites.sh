#!/usr/bin/env bash
# Compares a report with the engine's source: every line with an allocation call
# must have been reached. For each site of the report the first frame that lies
# in the engine and outside the tracked funnel (memory/vram_allocator.c) is
# turned into file:line by addr2line; an offset is a return address relative to
# the module's load address, so the call is one byte before it.
#
# Prints missing and extra lines, then "N of M reached". Exit code 0 if all
# were reached, 1 if not, 2 for bad input.
set -euo pipefail

die() {
  echo "check_sites.sh: $1" >&2
  exit 2
}

[ $# -eq 2 ] || die "usage: check_sites.sh REPORT_JSON ENGINE_BINARY"
report=$1 engine=$2
[ -r "$report" ] || die "cannot read the report '$report'"
[ -r "$engine" ] || die "cannot read the engine '$engine'"
for tool in jq addr2line readelf; do
  command -v "$tool" >/dev/null || die "needs $tool, which is not installed"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# site, frame, module, build id, offset; deepest frame first.
jq -r '.sites | to_entries[] | .key as $site | .value.frames // [] | to_entries[]
  | [$site, .key, (.value.module // "-" | tostring), (.value.build_id // "-" | tostring), (.value.offset | tostring)]
  | map(if . == "" then "-" else . end) | @tsv' "$report" >"$work/frames" 2>"$work/jq" ||
  die "the report is not in the expected form: $(head -n 1 "$work/jq")"
[ -s "$work/frames" ] || die "the report has no sites with frames"

build_id=$(readelf -n "$engine" 2>/dev/null | sed -n 's/^ *Build ID: *//p' | head -n 1)
name=$(basename "$engine")
# A program that is not position-independent has its load address in its own addresses.
base=0
if readelf -h "$engine" | grep -q 'Type: *EXEC'; then
  base=$(readelf -lW "$engine" | awk '$1 == "LOAD" { print $3; exit }')
fi

# The frames that lie in the engine, with the address of the call.
while IFS=$'\t' read -r site frame module id offset; do
  if [ "$id" != - ] && [ -n "$build_id" ]; then
    [ "$id" = "$build_id" ] || continue
  else
    [ "${module##*/}" = "$name" ] || continue
  fi
  printf '%s\t%s\t%x\n' "$site" "$frame" $((offset + base - 1))
done <"$work/frames" >"$work/engine"
[ -s "$work/engine" ] || die "no frame of the report lies in '$engine'"

cut -f3 "$work/engine" | sed 's/^/0x/' | addr2line -e "$engine" |
  sed -e 's/ (discriminator [0-9]*)$//' -e 's,^.*tests/engine/,,' -e 's,^\./,,' >"$work/places"

# Per site the first frame outside the funnel.
paste "$work/engine" "$work/places" | sort -t $'\t' -k1,1n -k2,2n |
  awk -F '\t' '$4 !~ /^memory\/vram_allocator\.c:/ && !($1 in seen) { seen[$1] = 1; print $4 }' |
  sort -u >"$work/reached"
"$(dirname "$0")/list_sites.sh" | sort -u >"$work/listed"

comm -23 "$work/listed" "$work/reached" | sed 's/^/missing /'
comm -13 "$work/listed" "$work/reached" | sed 's/^/extra /'
total=$(wc -l <"$work/listed")
hit=$(comm -12 "$work/listed" "$work/reached" | wc -l)
echo "$hit of $total reached"
[ "$hit" -eq "$total" ]
