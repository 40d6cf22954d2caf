#!/bin/sh
# Holds the reader of .eh_frame against readelf: every row of every function of some libraries, at its first and at its last address. Arguments: the
# program cfi_rows, then libraries.
rows=$1
shift
failed=0
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# What readelf says, in the words of cfi_rows. readelf shows "u" for a register that is not named and for one that is undefined.
expected() {
    readelf --debug-dump=frames-interp "$1" 2>/dev/null | awk '
    function rule(  cfa, ra, fp) {
        gsub(/ \([a-z0-9]+\)/, "") # r10 (r10)
        cfa = $2; ra = $NF
        fp = "u"
        for (i = 3; i <= NF; i++) if (column[i] == "rbp") fp = $i
        if (signal) return "other"
        if (ra == "u") return "end"
        if (cfa !~ /^(rsp|rbp)[+-]/ || ra !~ /^c[+-]/) return "other"
        sub(/^rsp/, "sp", cfa); sub(/^rbp/, "fp", cfa); sub(/^c/, "ra", ra)
        if (fp == "u") fp = "unnamed"
        else if (fp == "s") fp = "same"
        else if (fp ~ /^c[+-]/) { sub(/^c/, "saved", fp) }
        else fp = "lost"
        return cfa " " ra " " fp
    }
    function say(at, what) { sub(/^0+/, "", at); print (at == "" ? "0" : at) " " what }
    function before(at) { # the hexadecimal number one less
        n = length(at); out = ""; borrow = 1
        for (i = n; i > 0; i--) {
            d = index("0123456789abcdef", substr(at, i, 1)) - 1 - borrow
            borrow = d < 0
            out = substr("0123456789abcdef", (d + 16) % 16 + 1, 1) out
        }
        return out
    }
    function finish() {
        if (!in_fde) return
        if (last == "") { say(start, whole); last = whole; say(before(stop), whole) }
        else say(before(stop), last)
        in_fde = 0
    }
    / CIE "/ { finish(); cie = $1; is_signal[cie] = $5 ~ /S/; in_cie = 1; next }
    / FDE cie=/ {
        finish(); in_cie = 0
        split($5, c, "="); split($6, p, "="); split(p[2], range, "[.][.]")
        start = range[1]; stop = range[2]; signal = is_signal[c[2]]; whole = signal ? "other" : initial[c[2]]
        in_fde = "_" start != "_" stop; last = ""
        next
    }
    $1 == "LOC" { for (i = 1; i <= NF; i++) column[i] = $i; next }
    $1 ~ /^[0-9a-f]+$/ && length($1) == 16 && NF > 2 && in_cie { signal = 0; initial[cie] = rule(); next }
    $1 ~ /^[0-9a-f]+$/ && length($1) == 16 && NF > 2 && in_fde {
        at = "_" $1 # or awk takes 0e8099 for a number
        if (at == "_" stop) next
        if (last != "") say(before($1), last)
        last = rule()
        say($1, last)
        next
    }
    END { finish() }' | sort -u
}

# Lines of what is expected and what was said; 1 if any differ.
differ() {
    awk '{ n = int(NF / 2); bad = NF % 2 }
    { for (i = 1; i <= n; i++) if ("_" $i != "_" $(n + i) && !($i == "unnamed" && $(n + i) ~ /^(same|lost)$/)) bad = 1 }
    bad { print; any = 1 } END { exit any }'
}

for lib in "$@"; do
    name=$(basename "$lib")
    expected "$lib" >"$tmp/expected"
    awk '{ print $1 }' "$tmp/expected" | "$rows" "$lib" >"$tmp/got" || { echo "not ok $name: cfi_rows fails"; failed=1; continue; }
    n=$(wc -l <"$tmp/expected")
    if [ "$n" -lt 40 ]; then
        echo "not ok $name: readelf gave $n rows only"
        failed=1
    elif paste -d ' ' "$tmp/expected" "$tmp/got" | differ >"$tmp/differences"; then
        echo "ok $name ($n rows)"
    else
        echo "not ok $name: of $n rows these differ"
        head -20 "$tmp/differences"
        failed=1
    fi
done
exit $failed
