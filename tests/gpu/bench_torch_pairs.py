"""Compares a worker bare with the same worker recorded, or served by a plan, in turns.

A pair is a bare and a recorded (or served) process on the same CPU that make short slices of steps in turns, bare, other, other, bare, one idle
while the other runs. A machine whose clock or neighbours change is in the same state for the four slices of such a block, so a pair's
result is the median of its blocks' ratios, and the figure for a variant the median of the pairs'. Starts differ from
each other (where memory lies, what the caches hold), so every pair is a start of its own; the two processes of a pair have the same seed for
Python's hashes. With --aside there is one process a pair, of a library that can step aside: then nothing differs but whether it records.
With --plan the other side is served by that plan, which was made of a record of the same worker (bench_rate.py does both).

Writes JSON and prints a table; exits 1 where fewer pairs were made than asked for, where tokens differ, or where a variant's
ratio is above the limit. What a worker says on standard error is in a file of RUNS, and its end in the message where one fails.

usage: bench_torch_pairs.py --library LIBTENURE --runs FOLDER --json FILE [--aside | --plan PLAN] [--pairs N] [--blocks N] [--seconds S]
                            [--limit R] [-- WORKER COMMAND...]
"""
import argparse
import json
import math
import os
import select
import statistics
import subprocess
import sys
import time

AT_ONCE = 5  # pairs that start side by side: most of a start is imports, on a machine with CPUs to spare
ANSWER_SECONDS = 60  # a worker that is silent for longer has failed


class Worker:
    """A process that answers each line with one JSON line. Standard error goes to the file `errors`."""

    def __init__(self, command, environment, errors):
        self.errors, self.unread, self.said = errors, b"", None
        with open(errors, "wb") as sink:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sink, bufsize=0,
                                            env={**os.environ, **environment})

    def failure(self, what):
        with open(self.errors, "rb") as source:
            tail = source.read()[-3000:].decode(errors="replace").splitlines()[-12:]
        return RuntimeError("\n    ".join([f"{' '.join(self.process.args)[:200]}: {what}", *tail]))

    def answer(self):
        if self.said is not None:
            said, self.said = self.said, None
            return said
        deadline = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self.unread:
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise self.failure(f"no answer within {ANSWER_SECONDS:.0f} s")
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                raise self.failure(f"ended early with {self.process.wait()}")
            self.unread += part
        line, self.unread = self.unread.split(b"\n", 1)
        try:
            return json.loads(line)
        except ValueError:
            raise self.failure(f"said {line[:200]!r}") from None

    def say(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
        except OSError:
            raise self.failure(f"does not listen; ended with {self.process.poll()}") from None

    def begin(self):
        """Lets it through its gate, where it has one (bench_worker.py); does not wait for what comes then."""
        said = self.answer()
        if "gate" in said:
            self.say("go")
        else:
            self.said = said

    def pin(self):
        """To one CPU, the same for all: two differ in who else uses them."""
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            os.sched_setaffinity(int(thread), sorted(os.sched_getaffinity(0))[-1:])

    def slice(self, variant, aside):
        self.say(f"{variant} {aside}")
        return self.answer()

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=ANSWER_SECONDS)
        if code != 0:
            raise self.failure(f"did not end well, with {code}")

    def kill(self):
        self.process.kill()
        self.process.wait()


def one_pair(bare, other, names, blocks, seconds=math.inf):
    """For each variant the blocks' ratios, the medians of either side and the tokens' digests. Variants take turns too. Fewer blocks, but
    two at least, where `seconds` are over."""
    sides = {name: ([], []) for name in names}
    ratios = {name: [] for name in names}
    digests = {name: set() for name in names}
    until = time.monotonic() + seconds
    for block in range(blocks):
        if block >= 2 and time.monotonic() > until:
            break
        for number, name in enumerate(names):
            medians = ([], [])
            for side in (0, 1, 1, 0):
                part = (bare, other)[side].slice(number, 1 - side)
                medians[side].append(statistics.median(part["times"]))
                sides[name][side].extend(part["times"])
                digests[name].add(part["digest"])
            ratios[name].append(sum(medians[1]) / sum(medians[0]))
    return {name: {"ratio": statistics.median(ratios[name]), "bare": statistics.median(sides[name][0]),
                   "other": statistics.median(sides[name][1]), "digests": digests[name]} for name in names}


def other_side(options):
    return "served" if options.plan else "recorded"


def in_front(options, run):
    """The environment of a process that `library` records in the folder `run`, and serves by a plan where there is one."""
    os.makedirs(run)
    plan = {"TENURE_PLAN": os.path.abspath(options.plan)} if options.plan else {}
    return {"LD_PRELOAD": os.path.abspath(options.library), "TENURE_RUN": os.path.abspath(run), **plan}


def start(options, command, number):
    """The workers of one pair: (bare, other), or the same one twice."""
    run = os.path.join(options.runs, f"start{number}")
    seed = {"PYTHONHASHSEED": str(1 + number)}
    other = Worker(command, {**seed, **in_front(options, run)}, f"{run}.{other_side(options)}.err")
    return (other, other) if options.aside else (Worker(command, seed, f"{run}.bare.err"), other)


def measure(options, command, begun=()):
    """All pairs, of which `begun` are started already. Fewer than asked for where the time is over."""
    pairs, version, longest, deadline = [], None, 0, time.monotonic() + options.seconds
    begun = list(begun)
    while len(pairs) < options.pairs and time.monotonic() + longest < deadline:
        first = len(pairs)
        started = begun or [start(options, command, first + i) for i in range(min(AT_ONCE, options.pairs - first))]
        begun = []
        everyone = {id(w): w for pair in started for w in pair}.values()
        try:
            for w in everyone:
                w.begin()
            ready = [w.answer() for w in everyone]
            version = ready[0]["ready"]
            for w in everyone:
                w.pin()
            for pair in started:
                began = time.monotonic()
                pairs.append(one_pair(*pair, ready[0]["variants"], options.blocks, options.pair_seconds))
                longest = max(longest, time.monotonic() - began)
                if time.monotonic() + longest > deadline:
                    break
            for w in everyone:
                w.end()
        finally:
            for w in everyone:
                w.kill()
        for i in range(len(started)):
            if not any(name.endswith(".tnj") for name in os.listdir(os.path.join(options.runs, f"start{first + i}"))):
                raise RuntimeError(f"{other_side(options)} process {first + i} left no journal")
    return pairs, version


def folder_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


def compared(pairs, other):
    """One row a variant; `other` names the side that is not bare."""
    rows = []
    for name in pairs[0] if pairs else []:
        ratios = sorted(pair[name]["ratio"] for pair in pairs)
        rows.append({
            "case": name,
            "bare_us": round(statistics.median(pair[name]["bare"] for pair in pairs), 2),
            f"{other}_us": round(statistics.median(pair[name]["other"] for pair in pairs), 2),
            "ratio": round(statistics.median(ratios), 5),
            "ratio_min": round(ratios[0], 5),
            "ratio_max": round(ratios[-1], 5),
            "same_tokens": len(set().union(*(pair[name]["digests"] for pair in pairs))) == 1,
            "ratios": [round(pair[name]["ratio"], 5) for pair in pairs],
            "pairs_bare_us": [round(pair[name]["bare"], 2) for pair in pairs],
            f"pairs_{other}_us": [round(pair[name]["other"], 2) for pair in pairs],
        })
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--aside", action="store_true", help="one process a pair; LIBTENURE is libtenure_aside.so")
    parser.add_argument("--plan", help="the other side is served by it")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=16, help="of four slices, in a pair, for each variant")
    parser.add_argument("--seconds", type=float, default=130)
    parser.add_argument("--pair-seconds", type=float, default=math.inf, help="a pair that takes longer has fewer blocks")
    parser.add_argument("--limit", type=float, default=1.01, help="of recorded or served to bare")
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    if options.plan and options.aside:
        parser.error("a plan's reader cannot step aside")
    other = other_side(options)
    here = os.path.dirname(os.path.abspath(__file__))
    pairs, version = measure(options, options.command or [sys.executable, os.path.join(here, "bench_torch_decode.py"), "--steps", "12"])
    rows = compared(pairs, other)
    with open(options.json, "w", encoding="utf-8") as out:
        json.dump({"torch": version, "pairs": len(pairs), "pairs_wanted": options.pairs, "limit": options.limit, "aside": options.aside, "side": other,
                   "journal_bytes": folder_bytes(options.runs), "variants": rows}, out, indent=1)
    print(f"PyTorch {version}, {len(pairs)} of {options.pairs} pairs{', within one process each' if options.aside else ''}, "
          f"journals {folder_bytes(options.runs)} bytes")
    print(f"{'DECODE STEP':<18}{'BARE us':>10}{other.upper():>10}{'RATIO':>9}{'min':>9}{'max':>9}  TOKENS")
    for row in rows:
        print(f"{row['case']:<18}{row['bare_us']:>10}{row[f'{other}_us']:>10}{row['ratio']:>9.4f}"
              f"{row['ratio_min']:>9.4f}{row['ratio_max']:>9.4f}  {'same' if row['same_tokens'] else 'DIFFER'}")
    return 0 if len(pairs) == options.pairs and all(r["same_tokens"] and r["ratio"] <= options.limit for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
