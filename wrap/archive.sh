#!/bin/sh
# Makes libtenure_wrap.a of the core's archives: one merged object with all but its entry points made local, so that no
# name of it can meet one of the host program's, and one member for each function that can be wrapped, so that a program
# is linked with those it calls.
# Arguments: the output, the list program, the trampoline's source, the machine, then the core's archives.
# CC, LD, AS, AR and OBJCOPY name the tools.
set -eu
out=$1 lists=$2 trampoline=$3 machine=$4
shift 4
: "${CC:=gcc}" "${LD:=ld}" "${AS:=as}" "${AR:=ar}" "${OBJCOPY:=objcopy}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$lists" rename >"$work/rename"
"$lists" keep >"$work/keep"
"$LD" -r -o "$work/merged.o" --whole-archive "$@"
"$OBJCOPY" --redefine-syms="$work/rename" "$work/merged.o"
"$OBJCOPY" --keep-global-symbols="$work/keep" "$work/merged.o" "$work/tenure_core.o"

"$lists" members "$machine" | awk -v dir="$work" '
    !file { file = dir "/" $1; next }
    !NF { close(file); file = ""; next }
    { print > file }'
for s in "$work"/*.s; do
    "$AS" -o "${s%.s}.o" "$s"
    rm "$s"
done

# The exported pair is one member, drawn in by a name of its own: libc has a dlsym too, and might come first.
"$CC" -c -Dtn_dlsym_route=tenure_wrap_route -o "$work/trampoline.o" "$trampoline"
"$OBJCOPY" --add-symbol tenure_wrap_dlsym=.text:0,global "$work/trampoline.o"
"$LD" -r -o "$work/tenure_loader.o" "$work/trampoline.o" "$work/dlclose.o"
"$CC" -c -Dtn_dlsym_route=tenure_wrap_route -Ddlsym=__wrap_dlsym -o "$work/__wrap_dlsym.o" "$trampoline"
rm "$work/merged.o" "$work/trampoline.o" "$work/dlclose.o"

rm -f "$out"
# D: no times and no owners, so the same input gives the same file.
(cd "$work" && LC_ALL=C "$AR" rcsD archive.a tenure_core.o tenure_loader.o __wrap_*.o)
cp "$work/archive.a" "$out"
