"""Compares the decode steps of bench_torch_decode.py bare and recorded, in turns.

Several times a bare and a recorded process are started side by side, on the same CPU, and then make short slices of steps
in turns, one idle while the other runs: a machine whose clock or neighbours change does so for both. A round of a process is the
median over the steps of its slices, for each variant; a pair is a bare round and a recorded one. Starts differ from each other
(where memory lies, what the caches hold), so no result hangs on one of them. Writes JSON and prints a table; exits 1 where
fewer pairs were made than asked for, where tokens differ, or where a variant's recorded median is above the limit.

usage: bench_torch_pairs.py --library LIBTENURE --runs FOLDER --json FILE [--pairs N] [--rounds N] [--slices N] [--seconds S] [--limit R]
                            [-- WORKER COMMAND...]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time


class Worker:
    """A process that answers each line with one JSON line."""

    def __init__(self, command, environment):
        cpus = sorted(os.sched_getaffinity(0))[-1:]  # one: two differ in who else uses them
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **environment}, preexec_fn=lambda: os.sched_setaffinity(0, cpus))

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended early with {self.process.wait()}")
        return json.loads(line)

    def slice(self):
        self.process.stdin.write("round\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def one_pair(bare, recorded, slices):
    """A bare and a recorded round, slice by slice; who goes first changes with every slice."""
    rounds = ({}, {})
    for i in range(slices):
        for which in ((0, 1), (1, 0))[i % 2]:
            for name, part in (bare, recorded)[which].slice().items():
                kept = rounds[which].setdefault(name, {"times": [], "digests": set()})
                kept["times"] += part["times"]
                kept["digests"].add(part["digest"])
    return tuple({name: {"median": statistics.median(kept["times"]), "digests": kept["digests"]} for name, kept in r.items()}
                 for r in rounds)


def measure(options, command):
    """All pairs: a list of (bare round, recorded round). Fewer than asked for where the time is over."""
    pairs, version, longest, deadline = [], None, 0, time.monotonic() + options.seconds
    while len(pairs) < options.pairs and time.monotonic() + longest < deadline:
        began = time.monotonic()
        run = os.path.join(options.runs, f"start{len(pairs)}")
        os.makedirs(run)
        workers = [Worker(command, {}), Worker(command, {"LD_PRELOAD": options.library, "TENURE_RUN": run})]
        try:
            version = [w.answer()["ready"] for w in workers][0]
            for _ in range(min(options.rounds, options.pairs - len(pairs))):
                pairs.append(one_pair(*workers, options.slices))
            if [w.end() for w in workers] != [0, 0]:
                raise RuntimeError("a worker did not end well")
        finally:
            for w in workers:
                w.process.kill()
        if not any(name.endswith(".tnj") for name in os.listdir(run)):
            raise RuntimeError(f"the recorded process left no journal in {run}")
        longest = max(longest, time.monotonic() - began)
    return pairs, version


def folder_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def compared(pairs):
    """One row a variant: the medians over all rounds, their ratio, and the pairs' own ratios."""
    rows = []
    for name in pairs[0][0] if pairs else []:
        bare = [b[name]["median"] for b, _ in pairs]
        recorded = [r[name]["median"] for _, r in pairs]
        ratios = sorted(r / b for b, r in zip(bare, recorded))
        rows.append({
            "case": name,
            "bare_us": round(statistics.median(bare), 2),
            "recorded_us": round(statistics.median(recorded), 2),
            "ratio": round(statistics.median(recorded) / statistics.median(bare), 5),
            "pair_ratio_median": round(statistics.median(ratios), 5),
            "pair_ratio_min": round(ratios[0], 5),
            "pair_ratio_max": round(ratios[-1], 5),
            "bare_spread": round((max(bare) - min(bare)) / statistics.median(bare), 5),
            "same_tokens": len(set().union(*(side[name]["digests"] for pair in pairs for side in pair))) == 1,
            "rounds_bare_us": [round(x, 2) for x in bare],
            "rounds_recorded_us": [round(x, 2) for x in recorded],
        })
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2, help="pairs made by one start of the two processes")
    parser.add_argument("--slices", type=int, default=16, help="of each process in a pair")
    parser.add_argument("--seconds", type=float, default=130)
    parser.add_argument("--limit", type=float, default=1.01, help="of recorded to bare medians")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    pairs, version = measure(options, options.command or [sys.executable, os.path.join(here, "bench_torch_decode.py")])
    rows = compared(pairs)
    with open(options.json, "w", encoding="utf-8") as out:
        json.dump({"torch": version, "pairs": len(pairs), "pairs_wanted": options.pairs, "limit": options.limit,
                   "journal_bytes": folder_bytes(options.runs), "variants": rows}, out, indent=1)
    print(f"PyTorch {version}, {len(pairs)} of {options.pairs} pairs, journals {folder_bytes(options.runs)} bytes")
    print(f"{'DECODE STEP':<18}{'BARE us':>10}{'RECORDED':>10}{'RATIO':>9}{'PAIRS: median':>15}{'min':>9}{'max':>9}  TOKENS")
    for row in rows:
        print(f"{row['case']:<18}{row['bare_us']:>10}{row['recorded_us']:>10}{row['ratio']:>9.4f}{row['pair_ratio_median']:>15.4f}"
              f"{row['pair_ratio_min']:>9.4f}{row['pair_ratio_max']:>9.4f}  {'same' if row['same_tokens'] else 'DIFFER'}")
    return 0 if len(pairs) == options.pairs and all(r["same_tokens"] and r["ratio"] <= options.limit for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
