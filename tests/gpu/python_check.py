"""Checks on two reports of torch_callers.py and on what it printed. Prints "ok NAME" or "not ok NAME", and "# ..." lines for people."""
import json
import sys


def check(name, holds):
    print(("ok " if holds else "not ok ") + name)


def keys(report):
    return {(s["key"], s["python_key"]) for s in report["sites"]}


def main():
    reports = [json.load(open(path)) for path in sys.argv[2:4]]
    said = {line.split()[0]: line.split()[1:] for line in open(sys.argv[4])}
    by_name = {}
    for s in reports[0]["sites"]:
        names = [f["function"].split(".")[-1] for f in s["python_frames"]]
        for name in said:
            if name in names and s["peak_requested_bytes"] >= 32 << 20:
                at = names.index(name)
                s["shown"] = " ".join(f'{n}:{f["line"]}' for n, f in list(zip(names, s["python_frames"]))[at:at + 3])
                by_name.setdefault(name, []).append(s)
    for name, frames in said.items():
        got = [s["shown"] for s in by_name.get(name, [])]
        print("#", name, "traceback:", " ".join(frames), "report:", got)
        check(f"named_{name}", got == [" ".join(frames)])
    pairs = (("empty_one", "empty_two"), ("mm_one", "mm_two"))
    for a, b in pairs:
        one, two = by_name.get(a, [{}])[0], by_name.get(b, [{}])[0]
        check(f"apart_{a}_{b}", one.get("python_key") is not None and one.get("python_key") != two.get("python_key"))
        print("#", a, b, "same native key:", one.get("key") == two.get("key"))
    first, second = map(keys, reports)
    print("#", len(first), "and", len(second), "pairs of keys,", len(first & second), "in both")
    for k in sorted(first ^ second, key=str):
        print("# only in one:", k)
    check("keys_equal", first == second and len(first) > 0)
    print("# coverage notes:", reports[0]["coverage_notes"])


main()
