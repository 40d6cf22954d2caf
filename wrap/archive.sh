#!/bin/sh
# Makes libtenure_wrap.a of the core's archives: one object in which all but the __wrap_ functions, and what tenure.h looks up,
# is local, so that no name of it can meet one of the host program's.
# Arguments: the output, then the core's archives. LD, AR and OBJCOPY name the tools.
set -eu
out=$1
shift
: "${LD:=ld}" "${AR:=ar}" "${OBJCOPY:=objcopy}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$LD" -r -o "$work/merged.o" --whole-archive "$@"
# Without debug information: it names the weak real functions where they were called, and binutils 2.40 dies of that
# together with --wrap.
"$OBJCOPY" --strip-debug --redefine-sym dlsym=__wrap_dlsym --redefine-sym dlclose=__wrap_dlclose \
    --add-symbol tenure_wrap=.text:0,global "$work/merged.o"
"$OBJCOPY" --wildcard --keep-global-symbol='__wrap_*' --keep-global-symbol=tenure_wrap --keep-global-symbol='tenure_v1_*' --keep-global-symbol=tenure_tiers_seam_v1 \
    "$work/merged.o" "$work/tenure_core.o"

rm -f "$out"
# D: no times and no owners, so the same input gives the same file.
"$AR" rcsD "$out" "$work/tenure_core.o"
