"""Gathers what bench_record.sh measured into OUT/bench.json and prints the table of the calls.

usage: bench_table.py OUT LIMIT_NS GPU. Exit code 1 where nothing was measured or a recorded call costs more than the limit.
"""
import json
import os
import platform
import sys
import time


def read(path, parse, otherwise):
    try:
        with open(path, encoding="utf-8") as source:
            return parse(source)
    except (OSError, ValueError):
        return otherwise


def main():
    out, limit, gpu = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    rows = read(os.path.join(out, "calls.jsonl"), lambda lines: [json.loads(line) for line in lines], [])
    torch, aside = (read(os.path.join(out, name), json.load, None) for name in ("torch.json", "torch_aside.json"))
    print(f"{'WHAT':<58}{'CLOCK':<6}{'MEDIAN':>9}{'P10':>9}{'P90':>9}{'MEAN':>9}  ns per call")
    for r in rows:
        if r["group"] == "calls" or (r["group"] == "calls_null" and r["case"].endswith("added")):
            name = r["case"] + (" (both bare)" if r["group"] == "calls_null" else "")
            print(f"{name:<58}{r['clock']:<6}{r['median']:>9.0f}{r['p10']:>9.0f}{r['p90']:>9.0f}{r['mean']:>9.0f}")
    for r in rows:
        if r["group"] == "journal":
            print(f"journal, {r['operations']} x {r['case']}: {r['bytes']} bytes, {r['bytes'] / r['operations']:.1f} each")
    with open(os.path.join(out, "bench.json"), "w", encoding="utf-8") as sink:
        json.dump({"schema": "tenure-bench/1", "command": "tests/gpu/bench_record.sh",
                   "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                   "machine": {"cores": os.cpu_count(), "kernel": platform.release()}, "gpu": gpu, "results": rows, "torch": torch, "torch_aside": aside},
                  sink, indent=1)
    added = [r for r in rows if r["group"] == "calls" and r["clock"] == "wall" and r["case"].endswith("added")]
    over = [f"{r['case']} {r['median']:.0f}" for r in added if r["median"] > limit]
    holds = bool(added) and not over
    print(f"at most {limit:.0f} ns added to a call: {'holds' if holds else 'DOES NOT HOLD ' + '; '.join(over)}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
