#!/bin/bash
# Python callers with each interpreter of this machine, on the fake card: recorded layouts and line tables against the interpreter's own, random
# chains of calls against what it shows at the same call, and the situations of scenarios.py. Arguments: PART, then files. PART is one of
# layouts, chains, scenarios, embedding. The interpreter in /usr/bin must be among those that are found; others are named as not run.
situations=$1
shift
interpreters=
for file in "$@"; do
    case $file in
    */interpreters.sh) interpreters=$(realpath "$file") ;;
    esac
done
# shellcheck source=tests/shim/lib.sh
. "$1"
here=$WORK/python
mkdir "$here"
cp -L "$BIN"/*.py "$BIN"/*.c "$here/"
calls=${CALLS:-20000}

build_probe() { # INCLUDE
    gcc -O2 -Wall -Wextra -Werror -Wno-cast-function-type -Wno-unused-parameter -Wno-missing-field-initializers -shared -fPIC "-I$1" "$here/probe.c" \
        -o "$here/probe.so" "-L$LIB" -l:libcudart.so.13 2>"$here/probe.err"
}

# compare NAME RUN EXPECTED: what the journals say against what the interpreter said
compare() {
    "$BIN/chains" "$2" >"$here/got.unsorted" || not_ok "$1" "the journal is damaged or not whole"
    sort -n "$here/got.unsorted" >"$here/got"
    cat "$3".* 2>/dev/null | sort -n >"$here/wanted"
    lines=$(wc -l <"$here/wanted")
    if cmp -s "$here/got" "$here/wanted" && [ "$lines" -gt 0 ]; then
        ok "$1 ($lines calls)"
    else
        not_ok "$1" "of $lines calls differ: $(diff "$here/wanted" "$here/got" | head -n 4 | cut -c1-400)"
    fi
}

layouts() { # VERSION INCLUDE PROGRAM
    minor=${1#3.}
    minor=${minor%%.*}
    case $minor in 8 | 9) form=1 ;; 10) form=2 ;; *) form=3 ;; esac
    if gcc -w "-I$2" "-I$2/internal" "$here/layout_check.c" -o "$here/layout_check" 2>"$here/layout.err"; then
        "$here/layout_check" >"$here/layout.headers"
        "$BIN/layout_recorded" "$minor" >"$here/layout.recorded"
        empty "layout_$1" "$(diff "$here/layout.headers" "$here/layout.recorded")"
        at_least "layout_fields_$1" "$(wc -l <"$here/layout.headers")" 25
    else
        not_ok "layout_$1" "$(head -n 2 "$here/layout.err")"
    fi
    "$3" "$here/lines_check.py" "$LIB/liblines.so" $form >"$here/lines.out" 2>&1
    same "lines_$1 ($(tail -n 1 "$here/lines.out"))" $? 0
}

chains() { # VERSION INCLUDE PROGRAM
    build_probe "$2" || { not_ok "probe_$1" "$(head -n 3 "$here/probe.err")"; return; }
    export PYTHONPATH=$here
    recorded "random_$1" "run.$1" "$3" "$here/random_calls.py" "$calls" 3 "${1##*.}" "$here/expected.$1.0"
    same "random_exit_$1" $rc 0
    compare "random_$1" "run.$1" "$here/expected.$1"
    # Equal keys in a second recording, and in one with another hash seed and other addresses.
    for i in 1 2; do
        PYTHONHASHSEED=$i recorded "again_$1" "again.$1.$i" "$3" "$here/random_calls.py" 3000 1 5 "$here/again"
        "$BIN/tenure" report --json "again.$1.$i" | jq -r '.sites[] | "\(.key) \(.python_key)"' | sort >"$here/keys.$i"
    done
    empty "keys_equal_$1 ($(wc -l <"$here/keys.1") sites)" "$(diff "$here/keys.1" "$here/keys.2" | head -n 4)"
    at_least "keys_$1" "$(grep -vc null "$here/keys.1")" 100
    TENURE_PYTHON=0 recorded "off_$1" "off.$1" "$3" "$here/random_calls.py" 200 1 5 "$here/off"
    same "off_$1" "$("$BIN/chains" "off.$1" | cut -f2 | sort -u)" -
    unset PYTHONPATH
}

scenarios() { # VERSION INCLUDE PROGRAM
    build_probe "$2" || { not_ok "probe_$1" "$(head -n 3 "$here/probe.err")"; return; }
    export PYTHONPATH=$here
    for name in recursion reuse same_names replaced texts traced debugged native_threads at_exit forks forks_late signals subinterpreters; do
        recorded "$name" "$name.$1" timeout 100 "$3" -W ignore "$here/scenarios.py" $name "$here/$name.$1"
        same "${name}_exit_$1" "$rc$(cat "$name.err")" 0
        minor=${1#3.}
        if [ $name = subinterpreters ] && [ "${minor%%.*}" -lt 12 ]; then
            # Which interpreter a thread runs in is not known there: no Python part, never a wrong one.
            "$BIN/chains" "$name.$1" | sort -n >"$here/got"
            cat "$here/$name.$1".* | sort -n >"$here/wanted"
            empty "${name}_never_wrong_$1" "$(comm -13 "$here/wanted" "$here/got" | grep -v '	-$')"
            holds "${name}_said_$1" "$("$BIN/tenure" report "$name.$1")" '*several Python interpreters*'
        else
            compare "${name}_$1" "$name.$1" "$here/$name.$1"
        fi
    done
    for i in 1 2 3 4 5; do
        recorded daemons "daemons.$1.$i" timeout 100 "$3" "$here/scenarios.py" daemons "$here/daemons.$1"
        same "daemons_${i}_$1" "$rc$(cat daemons.err)" 0
        rm -rf "daemons.$1.$i"
    done
    unset PYTHONPATH
}

# A host that loads and unloads an interpreter while another thread allocates. Not every version survives that by itself.
embedding() { # VERSION INCLUDE PROGRAM
    library=$("$3" -c 'import os, sys, sysconfig as s; print(os.path.join(s.get_config_var("LIBDIR"), s.get_config_var("INSTSONAME") or ""), sys.base_prefix)')
    prefix_folder=${library##* }
    library=${library% *}
    [ -f "$library" ] || { skip "embedding_$1" "no shared library"; return; }
    native bare "$BIN/embed" "$library" "$prefix_folder"
    [ "$rc" = 0 ] || { skip "embedding_$1" "exit $rc by itself"; return; }
    for i in 1 2 3; do
        recorded embedded "embedded.$1.$i" "$BIN/embed" "$library" "$prefix_folder"
        same_output "embedding_${i}_$1" bare embedded
        same "embedding_names_${i}_$1" "$("$BIN/chains" "embedded.$1.$i" | grep -v '^256' | cut -d'|' -f2 | grep -c '^f[012]$')" 3
    done
}

while read -r version include program; do
    $situations "$version" "$include" "$program"
    seen="$seen $version"
done <<EOF
$(sh "$interpreters")
EOF
holds interpreters "$seen" "*3.11.*"
for minor in 8 9 10 11 12 13 14; do
    case $seen in
    *" 3.$minor."*) ;;
    *) skip "python_3.$minor" "not on this machine" ;;
    esac
done
finish
