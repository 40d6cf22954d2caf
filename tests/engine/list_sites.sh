#!/usr/bin/env bash
# Lists the source lines of the engine that hold an allocation call, as
# file:line relative to this folder, from the source itself; comments do not
# count. With --calls one line per call: file:line:api.
set -euo pipefail

usage() {
  echo "usage: list_sites.sh [--calls]" >&2
  exit 2
}

mode=lines
case "${1-}" in
'') ;;
--calls) mode=calls ;;
*) usage ;;
esac
[ $# -le 1 ] || usage

cd "$(dirname "$0")"
# core/ and the eight other subsystems; app/ only steers.
for dir in exec compute runtime model quant memory vision core lora; do
  for file in "$dir"/*.c; do
    awk -v file="$file" -v mode="$mode" '
      {
        line = $0
        # Comments go, also those over several lines.
        if (inside) {
          if (!match(line, /\*\//)) next
          line = substr(line, RSTART + 2)
          inside = 0
        }
        while (match(line, /\/\*/)) {
          head = substr(line, 1, RSTART - 1)
          rest = substr(line, RSTART + 2)
          if (!match(rest, /\*\//)) { line = head; inside = 1; break }
          line = head " " substr(rest, RSTART + 2)
        }
        sub(/\/\/.*/, "", line)
        found = 0
        while (match(line, /(^|[^A-Za-z0-9_])(cudaMallocAsync|cudaMallocHost|cudaMalloc|cudaHostAlloc|cudaHostRegister|vram_alloc)[ \t]*\(/)) {
          api = substr(line, RSTART, RLENGTH)
          gsub(/[^A-Za-z_]/, "", api)
          line = substr(line, RSTART + RLENGTH)
          found = 1
          if (mode == "calls") print file ":" FNR ":" api
        }
        if (found && mode == "lines") print file ":" FNR
      }' "$file"
  done
done
