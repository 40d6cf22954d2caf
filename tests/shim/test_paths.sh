#!/bin/sh
# Programs and libraries under paths of every legal length, and a program that its loader is told to start.
# shellcheck source=tests/shim/lib.sh
. "$1"
native plain.native "$BIN/prog_plain"
same natively "$rc:$(cat plain.native.out)" 0:7

# as_plain NAME RUN COMMAND...: the output of the plain program, and its calls recorded
as_plain() {
    name=$1 run=$2
    shift 2
    recorded "$name" "$run" "$@"
    same_output "$name" plain.native "$name"
    same "${name}_is_recorded" "$(total "$run" allocs):$(total "$run" frees)" 1:1
    same "${name}_says_nothing" "$(cat "$name.tenure")" ''
}

part=$(printf '%0200d' 0)
long=$WORK/$part/$part/$part/$part/$part/$part/$part/$part/$part
mkdir -p "$long"
cp -L "$LIB"/libcuda.so.1 "$LIB"/libcudart.so.13 "$BIN/prog_plain" "$long/"
as_plain program_in_a_long_path run.program "$long/prog_plain"
DRIVER=$long
as_plain libraries_in_a_long_path run.libraries "$BIN/prog_plain"
as_plain run_folder_in_a_long_path "$long/run" "$long/prog_plain"
same long_paths_are_kept_whole "$(grep -laF "$long/prog_plain" run.program/*.tnj | wc -l)" 1
DRIVER=$LIB

loader=$(readelf -lW "$BIN/prog_plain" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
as_plain started_by_its_loader run.loader "$loader" "$BIN/prog_plain"
same the_program_is_named "$(grep -laF "$BIN/prog_plain" run.loader/*.tnj | wc -l)" 1
cp -L "$BIN/prog_plain" here
as_plain started_by_its_loader_from_here run.here "$loader" ./here
same a_relative_name_is_made_whole "$(grep -laF "$WORK/./here" run.here/*.tnj | wc -l)" 1
finish
