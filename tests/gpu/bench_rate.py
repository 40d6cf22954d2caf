"""Compares programs bare with the same programs served by the plan of their own record: time a step or a request, and peak memory.

Each program is a worker of bench_torch_pairs.py. It is recorded once, its plan is made, then a bare and a served process run by themselves for
their peak memory, then pairs of them in turns. A program that fails is named and the others go on. Writes JSON and prints
a table; exits 1 where a program failed, a ratio is above its limit, outputs differ, or a served process served nothing.

Memory: what the device has in use above what it had before the process started CUDA, at its highest, and, where NVML knows the
process, its own figure; both sampled. Nothing else may start or end on the device at that time.

usage: bench_rate.py --library LIBTENURE --tenure TENURE --programs FILE --work FOLDER --json FILE [--seconds S]
FILE: a JSON list of {"name", "command", "environment"?, "limit", "pairs", "blocks", "share"}; share: of the time for pairs.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time
import types

import bench_memory
import bench_torch_pairs as turns

REPORT_SECONDS = 12  # kept for the reports at the end
PLAN_SECONDS = 30
RECORDED_SLICES = 3


class Over(BaseException):
    """The time is over: what was measured until now is still to be told."""


def over(_signal, _frame):
    raise Over


class Program:
    """One program on its way; `failed` says why it went no further."""

    def __init__(self, options, described):
        self.options, self.failed, self.result, self.peaks = options, [], None, {}
        self.name, self.limit = described["name"], described["limit"]
        self.command = ["env", *(f"{k}={v}" for k, v in described.get("environment", {}).items()), *described["command"]]
        self.folder = os.path.join(options.work, self.name)
        self.share = described["share"]
        self.pairs = types.SimpleNamespace(library=options.library, plan=None, aside=False, pairs=described["pairs"], blocks=described["blocks"],
                                           runs=os.path.join(self.folder, "pairs"), seconds=0, pair_seconds=0)
        os.makedirs(self.pairs.runs)

    def path(self, name):
        return os.path.join(self.folder, name)

    def front(self, name):
        return turns.in_front(self.pairs, self.path(name))


def each(programs, what, step):
    """`step` for each program that is still on its way."""
    for p in programs:
        if not p.failed:
            try:
                step(p)
            except Exception as failure:  # the others are to be measured all the same
                p.failed.append(f"{what}: {failure}")
                print(f"FAILED: {p.name}, {what}: {failure}", flush=True)


def left(options):
    return options.deadline - time.monotonic()


def record(programs):
    """The imports side by side, then one after the other, since a record reads what the device has left; each plan beside the next record."""
    def start(p):
        p.worker = turns.Worker(p.command, p.front("record"), p.path("record.err"))

    def finish(p):
        try:
            p.worker.begin()
            ready = p.worker.answer()
            for variant in list(range(len(ready["variants"]))) * RECORDED_SLICES:
                p.worker.slice(variant, 0)
            p.worker.end()
        finally:
            p.worker.kill()
        with open(p.path("plan.txt"), "w", encoding="utf-8") as text:
            p.planner = subprocess.Popen([p.options.tenure, "plan", p.path("record"), "--quiet", "-o", p.path("plan.json")], stdout=text,
                                         stderr=subprocess.STDOUT)

    def planned(p):
        try:
            code = p.planner.wait(timeout=PLAN_SECONDS)
        finally:
            p.planner.kill()
        if code != 0 or not os.path.exists(p.path("plan.json")):
            with open(p.path("plan.txt"), encoding="utf-8", errors="replace") as text:
                raise RuntimeError(f"tenure plan gave {code}: {text.read()[-1500:]}")
        p.pairs.plan = p.path("plan.json")

    each(programs, "record", start)
    each(programs, "record", finish)
    each(programs, "plan", planned)


def start_all(programs):
    """The processes by themselves first, since they are wanted first; all wait at their gates."""
    def alone(p):
        p.alone = {"bare": turns.Worker(p.command, {}, p.path("alone.bare.err")),
                   "served": turns.Worker(p.command, p.front("alone"), p.path("alone.served.err"))}

    def pairs(p):
        p.started = []
        for number in range(p.pairs.pairs):
            p.started.append(turns.start(p.pairs, p.command, number))

    each(programs, "start", alone)
    each(programs, "start", pairs)


def kill_all(programs):
    for p in programs:
        for worker in [*([p.worker] if hasattr(p, "worker") else []), *getattr(p, "alone", {}).values(), *(w for pair in getattr(p, "started", []) for w in pair)]:
            worker.kill()


def memory(programs):
    """Each process by itself past its gate, to its end."""
    device = bench_memory.Device()

    def alone(p):
        try:
            for side, worker in p.alone.items():
                at_gate = worker.answer()
                if "gate" not in at_gate:
                    raise RuntimeError(f"the worker has no gate, but said {at_gate}")
                with device.sampled(worker.process.pid) as peak:
                    worker.say("go")
                    for variant in range(len(worker.answer()["variants"])):
                        worker.slice(variant, 0)
                worker.end()
                p.peaks[side] = peak.figures
        finally:  # a process that stayed would count in the next one's figures
            for worker in p.alone.values():
                worker.kill()

    each(programs, "memory", alone)


def compare(programs):
    """The pairs of each program, within its share of the time that is left."""
    def pairs(p):
        shares = sum(q.share for q in programs[programs.index(p):] if not q.failed)
        p.pairs.seconds = max(0.0, (left(p.options) - REPORT_SECONDS) * p.share / shares)
        p.pairs.pair_seconds = p.pairs.seconds * 0.7 / p.pairs.pairs  # the rest is for loading
        made, p.version = turns.measure(p.pairs, p.command, p.started)
        if 2 * len(made) < p.pairs.pairs:
            raise RuntimeError(f"{len(made)} of {p.pairs.pairs} pairs in {p.pairs.seconds:.0f} s")
        p.result, p.made = turns.compared(made, "served"), len(made)

    each(programs, "pairs", pairs)


def routes(programs):
    """What each served process's report says of its calls: all together where each could be read, and each is to have served."""
    def start(p):
        p.reports = []
        for run in [p.path("alone"), *(os.path.join(p.pairs.runs, f"start{n}") for n in range(p.made))]:
            with open(run + ".err", "wb") as errors:
                p.reports.append((run, subprocess.Popen([p.options.tenure, "report", "--json", "--symbol-seconds", "1", "-o", run + ".json", run],
                                                        stdout=errors, stderr=errors)))

    def finish(p):
        p.calls = dict.fromkeys(("served", "spilled", "unplanned", "waited", "driver"), 0)
        for run, process in p.reports:
            try:
                code = process.wait(timeout=max(5.0, left(p.options)))
            finally:
                process.kill()
            if code not in (0, 3):
                with open(run + ".err", encoding="utf-8", errors="replace") as text:
                    raise RuntimeError(f"the report of {os.path.basename(run)} gave {code}: {text.read()[-800:]}")
            with open(run + ".json", encoding="utf-8") as text:
                report = json.load(text)
            routing = report.get("routing") or {}
            if not routing.get("served_calls"):
                raise RuntimeError(f"{os.path.basename(run)} served nothing")
            for name in ("served", "spilled", "unplanned", "waited"):
                p.calls[name] += routing[f"{name}_calls"]
            p.calls["driver"] += (report.get("serving") or {}).get("driver_allocations") or 0

    measured = [p for p in programs if p.result]
    each(measured, "report", start)
    each(measured, "report", finish)


def mib(peaks, how):
    """The peak of either side in MiB, "-" where it is not known."""
    return [f"{peaks[side][how] / 2**20:.1f}" if peaks.get(side, {}).get(how) is not None else "-" for side in ("bare", "served")]


def table(programs):
    """Prints the rows; the number of limits that were missed."""
    missed = 0
    print(f"{'PROGRAM':<26}{'BARE us':>11}{'SERVED us':>11}{'RATIO':>9}{'min':>9}{'max':>9}{'LIMIT':>8}{'A SECOND, BARE':>16}{'SERVED':>11}  PAIRS OUTPUT")
    for p in programs:
        for row in p.result or []:
            good = row["same_tokens"] and row["ratio"] < p.limit
            missed += not good
            print(f"{p.name + ', ' + row['case']:<26}{row['bare_us']:>11.2f}{row['served_us']:>11.2f}{row['ratio']:>9.4f}{row['ratio_min']:>9.4f}"
                  f"{row['ratio_max']:>9.4f}{p.limit:>8.3f}{1e6 / row['bare_us']:>16.1f}{1e6 / row['served_us']:>11.1f}  {p.made:>2}/{p.pairs.pairs:<2} "
                  f"{'same' if row['same_tokens'] else 'DIFFER'}{'' if good else '  MISSED'}")
    print(f"\n{'PEAK MiB':<18}{'BARE':>10}{'SERVED':>10}{'BY NVML, BARE':>16}{'SERVED':>10}   {'CALLS SERVED':>12}{'SPILLED':>9}{'UNPLANNED':>11}{'WAITED':>8}{'DRIVER, SERVING':>17}")
    for p in programs:
        device, own = mib(p.peaks, "device"), mib(p.peaks, "process")
        calls = getattr(p, "calls", {})
        print(f"{p.name:<18}{device[0]:>10}{device[1]:>10}{own[0]:>16}{own[1]:>10}   {calls.get('served', '-'):>12}{calls.get('spilled', '-'):>9}"
              f"{calls.get('unplanned', '-'):>11}{calls.get('waited', '-'):>8}{calls.get('driver', '-'):>17}")
    for p in programs:
        for why in p.failed:
            print(f"FAILED: {p.name}, {why.splitlines()[0]}")
    return missed


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "tenure", "programs", "work", "json"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--seconds", type=float, default=140)
    parser.add_argument("--answer-seconds", type=float, default=35, help="a worker that is silent for longer has failed")
    options = parser.parse_args()
    turns.ANSWER_SECONDS = options.answer_seconds
    signal.signal(signal.SIGTERM, over)
    options.deadline = time.monotonic() + options.seconds
    with open(options.programs, encoding="utf-8") as source:
        programs = [Program(options, described) for described in json.load(source)]
    try:
        for what, step in (("recorded and planned", record), ("started", start_all), ("peak memory", memory), ("compared", compare), ("reports", routes)):
            began = time.monotonic()
            step(programs)
            print(f"# {what}: {time.monotonic() - began:.1f} s, {left(options):.0f} s left", flush=True)
    except Over:
        for p in programs:
            p.failed += [] if p.result else ["the time is over"]
    finally:
        kill_all(programs)
    missed = table(programs)
    with open(options.json, "w", encoding="utf-8") as out:
        json.dump([{"program": p.name, "limit": p.limit, "pairs": getattr(p, "made", 0), "pairs_wanted": p.pairs.pairs, "version": getattr(p, "version", None),
                    "variants": p.result, "peaks": p.peaks, "calls": getattr(p, "calls", None), "failed": p.failed} for p in programs], out, indent=1)
    return 1 if missed or not programs or any(p.failed for p in programs) else 0


if __name__ == "__main__":
    sys.exit(main())
