#!/bin/sh
# Prints the CPython interpreters of this machine that have headers, one a line: the version, its folder of headers and the program. $PYTHONS names
# them, else all python3.N on the path and those that pyenv manages.
home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
root=${PYENV_ROOT:-$home/.pyenv}
if [ -n "$PYTHONS" ]; then
    # shellcheck disable=SC2086 # a list
    set -- $PYTHONS
else
    set --
    for minor in 8 9 10 11 12 13 14; do
        for program in "/usr/bin/python3.$minor" "/usr/local/bin/python3.$minor" "$root"/versions/3."$minor".*/bin/python3; do
            [ -x "$program" ] && set -- "$@" "$program"
        done
    done
fi
for program in "$@"; do
    "$program" -c '
import os, platform, sys, sysconfig
include = sysconfig.get_paths()["include"]
if platform.python_implementation() == "CPython" and os.path.exists(include + "/Python.h"):
    print("%d.%d.%d" % sys.version_info[:3], include, sys.executable)' 2>/dev/null
done
