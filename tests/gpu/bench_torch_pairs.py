"""Compares the decode steps of bench_torch_decode.py bare and recorded, in turns.

A pair is a bare and a recorded process on the same CPU that make short slices of steps in turns, bare, recorded, recorded, bare, one idle
while the other runs. A machine whose clock or neighbours change is in the same state for the four slices of such a block, so a pair's
result is the median of its blocks' ratios, and the figure for a variant the median of the pairs'. Starts differ from
each other (where memory lies, what the caches hold), so every pair is a start of its own; the two processes of a pair have the same seed for
Python's hashes. With --aside there is one process a pair, of a library that can step aside: then nothing differs but whether it records.

Writes JSON and prints a table; exits 1 where fewer pairs were made than asked for, where tokens differ, or where a variant's
ratio is above the limit.

usage: bench_torch_pairs.py --library LIBTENURE --runs FOLDER --json FILE [--aside] [--pairs N] [--blocks N] [--seconds S] [--limit R]
                            [-- WORKER COMMAND...]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

AT_ONCE = 5  # pairs that start side by side: most of a start is imports, on a machine with CPUs to spare


class Worker:
    """A process that answers each line with one JSON line."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended early with {self.process.wait()}")
        return json.loads(line)

    def pin(self):
        """To one CPU, the same for all: two differ in who else uses them."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            os.sched_setaffinity(int(thread), sorted(os.sched_getaffinity(0))[-1:])

    def slice(self, variant, aside):
        self.process.stdin.write(f"{variant} {aside}\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def one_pair(bare, recorded, names, blocks):
    """For each variant the blocks' ratios, the medians of either side and the tokens' digests. Variants take turns too."""
    sides = {name: ([], []) for name in names}
    ratios = {name: [] for name in names}
    digests = {name: set() for name in names}
    for _ in range(blocks):
        for number, name in enumerate(names):
            medians = ([], [])
            for side in (0, 1, 1, 0):
                part = (bare, recorded)[side].slice(number, 1 - side)
                medians[side].append(statistics.median(part["times"]))
                sides[name][side].extend(part["times"])
                digests[name].add(part["digest"])
            ratios[name].append(sum(medians[1]) / sum(medians[0]))
    return {name: {"ratio": statistics.median(ratios[name]), "bare": statistics.median(sides[name][0]),
                   "recorded": statistics.median(sides[name][1]), "digests": digests[name]} for name in names}


def start(options, command, number):
    """The workers of one pair: (bare, recorded), or the same one twice."""
    run = os.path.join(options.runs, f"start{number}")
    os.makedirs(run)
    seed = {"PYTHONHASHSEED": str(1 + number)}
    recorded = Worker(command, {**seed, "LD_PRELOAD": options.library, "TENURE_RUN": run})
    return (recorded, recorded) if options.aside else (Worker(command, seed), recorded)


def measure(options, command):
    """All pairs. Fewer than asked for where the time is over."""
    pairs, version, longest, deadline = [], None, 0, time.monotonic() + options.seconds
    while len(pairs) < options.pairs and time.monotonic() + longest < deadline:
        first = len(pairs)
        started = [start(options, command, first + i) for i in range(min(AT_ONCE, options.pairs - first))]
        everyone = {id(w): w for pair in started for w in pair}.values()
        try:
            ready = [w.answer() for w in everyone]
            version = ready[0]["ready"]
            for w in everyone:
                w.pin()
            for pair in started:
                began = time.monotonic()
                pairs.append(one_pair(*pair, ready[0]["variants"], options.blocks))
                longest = max(longest, time.monotonic() - began)
                if time.monotonic() + longest > deadline:
                    break
            if [w.end() for w in everyone] != [0] * len(everyone):
                raise RuntimeError("a worker did not end well")
        finally:
            for w in everyone:
                w.process.kill()
        for i in range(len(started)):
            if not any(name.endswith(".tnj") for name in os.listdir(os.path.join(options.runs, f"start{first + i}"))):
                raise RuntimeError(f"recorded process {first + i} left no journal")
    return pairs, version


def folder_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def compared(pairs):
    """One row a variant."""
    rows = []
    for name in pairs[0] if pairs else []:
        ratios = sorted(pair[name]["ratio"] for pair in pairs)
        rows.append({
            "case": name,
            "bare_us": round(statistics.median(pair[name]["bare"] for pair in pairs), 2),
            "recorded_us": round(statistics.median(pair[name]["recorded"] for pair in pairs), 2),
            "ratio": round(statistics.median(ratios), 5),
            "ratio_min": round(ratios[0], 5),
            "ratio_max": round(ratios[-1], 5),
            "same_tokens": len(set().union(*(pair[name]["digests"] for pair in pairs))) == 1,
            "ratios": [round(pair[name]["ratio"], 5) for pair in pairs],
            "pairs_bare_us": [round(pair[name]["bare"], 2) for pair in pairs],
            "pairs_recorded_us": [round(pair[name]["recorded"], 2) for pair in pairs],
        })
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--aside", action="store_true", help="one process a pair; LIBTENURE is libtenure_aside.so")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=16, help="of four slices, in a pair, for each variant")
    parser.add_argument("--seconds", type=float, default=130)
    parser.add_argument("--limit", type=float, default=1.01, help="of recorded to bare")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    pairs, version = measure(options, options.command or [sys.executable, os.path.join(here, "bench_torch_decode.py"), "--steps", "12"])
    rows = compared(pairs)
    with open(options.json, "w", encoding="utf-8") as out:
        json.dump({"torch": version, "pairs": len(pairs), "pairs_wanted": options.pairs, "limit": options.limit, "aside": options.aside,
                   "journal_bytes": folder_bytes(options.runs), "variants": rows}, out, indent=1)
    print(f"PyTorch {version}, {len(pairs)} of {options.pairs} pairs{', within one process each' if options.aside else ''}, "
          f"journals {folder_bytes(options.runs)} bytes")
    print(f"{'DECODE STEP':<18}{'BARE us':>10}{'RECORDED':>10}{'RATIO':>9}{'min':>9}{'max':>9}  TOKENS")
    for row in rows:
        print(f"{row['case']:<18}{row['bare_us']:>10}{row['recorded_us']:>10}{row['ratio']:>9.4f}"
              f"{row['ratio_min']:>9.4f}{row['ratio_max']:>9.4f}  {'same' if row['same_tokens'] else 'DIFFER'}")
    return 0 if len(pairs) == options.pairs and all(r["same_tokens"] and r["ratio"] <= options.limit for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
