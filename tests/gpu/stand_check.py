"""Reads a report (`tenure report --json`) and checks it against what an independent witness saw.

    stand_check.py counts REPORT COUNTS LEVELS   compares calls per API with CUPTI's counts (cupti_counter.c);
                                                 LEVELS is "driver" or "driver,runtime"
    stand_check.py module REPORT NAME            wants a site that allocated and whose stack has a module with NAME
                                                 in its file name

Exit code 0 if the check holds, 1 if not, 2 if a file cannot be read. The table goes to stdout.
"""
import json
import re
import sys

MEMORY = {
    "driver": re.compile(
        r"^cu(Mem(Alloc|Free|HostAlloc|HostRegister|HostUnregister|Create|Release|Map|Unmap|AddressReserve|"
        r"AddressFree|PoolCreate|PoolDestroy|PoolTrimTo|PoolImport|ImportFrom|RetainAllocation)|Array3?D?Create|"
        r"ArrayDestroy|MipmappedArray(Create|Destroy)|Ipc(Open|Close)MemHandle|ImportExternalMemory|"
        r"ExternalMemoryGetMapped|DestroyExternalMemory|DeviceGraphMemTrim)"
    ),
    "runtime": re.compile(r"^cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister|MemPool(Create|Destroy|TrimTo))"),
}


def read_counts(path):
    """CUPTI's file: {level: {api: (calls, failed, shared, private, unknown)}}."""
    counts = {"driver": {}, "runtime": {}}
    complete = False
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if words[:2] == ["end", "complete"]:
                complete = True
            elif words and words[0] == "overflow" and int(words[1]) != 0:
                raise ValueError(f"{path}: {words[1]} calls had no counter")
            elif words and words[0] in counts:
                name = words[1]
                if words[0] == "runtime":
                    # CUPTI spells the version into runtime names: cudaMalloc_v3020.
                    name = re.sub(r"_v\d{4,5}$", "", name)
                figures = tuple(int(word) for word in words[2:7])
                before = counts[words[0]].get(name, (0, 0, 0, 0, 0))
                counts[words[0]][name] = tuple(a + b for a, b in zip(before, figures))
    if not complete:
        raise ValueError(f"{path}: the file is cut short")
    return counts


def read_report(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def journal_calls(report, level):
    calls = {}
    for row in report["coverage"]:
        if row.get("level") == level and "api" in row:
            calls[row["api"]] = calls.get(row["api"], 0) + int(row.get("calls", 0))
    return calls


def compare_level(level, cupti, journal):
    """Prints one row per allocation or free API; returns the names that differ."""
    column = 2 if level == "runtime" else 0
    names = sorted(n for n in set(cupti) | set(journal) if MEMORY[level].match(n))
    wrong = []
    total = 0
    heading = "cupti (shared cudart)" if level == "runtime" else "cupti"
    print(f"{level + ' API':36} {heading:>22} {'failed':>8} {'journal':>10}")
    for name in names:
        row = cupti.get(name, (0, 0, 0, 0, 0))
        seen, kept = row[column], journal.get(name, 0)
        if seen == 0 and kept == 0:
            continue
        total += seen
        same = seen == kept
        if not same:
            wrong.append(name)
        print(f"{name:36} {seen:22} {row[1]:8} {kept:10}  {'same' if same else 'differs'}")
        if level == "runtime" and row[4]:
            print(f"{'':36} {row[4]} calls whose stack did not tell the cudart")
    if total == 0:
        print(f"no {level} allocation or free was counted by CUPTI")
        wrong.append("nothing counted")
    return wrong


def note_others(level, cupti, journal):
    """Names that are no allocation or free, for information: both sides know them and the counts differ."""
    for name in sorted(set(cupti) & set(journal)):
        if not MEMORY[level].match(name) and level == "driver" and cupti[name][0] != journal[name]:
            print(f"note: {name} cupti={cupti[name][0]} journal={journal[name]}")


def check_counts(report_path, counts_path, levels):
    report, counts = read_report(report_path), read_counts(counts_path)
    wrong = []
    for level in levels.split(","):
        journal = journal_calls(report, level)
        wrong += compare_level(level, counts[level], journal)
        note_others(level, counts[level], journal)
    dropped = int(report.get("dropped_events", 0))
    if dropped:
        print(f"dropped_events={dropped}")
        wrong.append("dropped events")
    print("differs: " + ", ".join(wrong) if wrong else "all counts are the same")
    return 1 if wrong else 0


def check_module(report_path, name):
    found = 0
    for site in read_report(report_path)["sites"]:
        inside = any(name in (frame.get("module") or "") for frame in site.get("frames", []))
        if inside and int(site.get("allocs", 0)) > 0:
            found += 1
            if found <= 3:
                print(json.dumps({key: value for key, value in site.items() if key != "frames"}))
                for frame in site["frames"]:
                    print("   ", frame.get("module"), frame.get("offset"), frame.get("symbol") or "")
    print(f"allocating sites with {name} in the stack: {found}")
    return 0 if found else 1


def main(arguments):
    try:
        if len(arguments) == 4 and arguments[0] == "counts":
            return check_counts(*arguments[1:])
        if len(arguments) == 3 and arguments[0] == "module":
            return check_module(*arguments[1:])
    except (OSError, ValueError, KeyError) as problem:
        print(f"stand_check: {type(problem).__name__}: {problem}", file=sys.stderr)
        return 2
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
