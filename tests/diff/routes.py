#!/usr/bin/env python3
"""What a plan made of the requests in a run's journals (docs/JOURNAL.md, ALLOC): routes.py FOLDER prints "SERVED SPILLED NATIVE UNPLANNED",
the requests that a tier served, those that were planned and went to the driver after all, those of sites that the plan leaves to it,
and those of sites that it does not name. Exit code 3 where events were dropped."""
import glob
import os
import struct
import sys

HEAD, CHUNK, EVENT, MAGIC = 8192, 65536, 64, 0x314B4843
EVENTS, ALLOC, POOL = 1, 1, 4


def count(path, counts):
    with open(path, "rb") as f:
        head = f.read(HEAD)
        dropped = struct.unpack_from("<QQ", head, 32)
        while len(chunk := f.read(CHUNK)) == CHUNK:
            magic, kind = struct.unpack_from("<II", chunk)
            if magic != MAGIC or kind != EVENTS:
                continue
            for at in range(EVENT, CHUNK, EVENT):
                if chunk[at + 8] != ALLOC or chunk[at + 9] == POOL:  # whose word is the pool's handle
                    continue
                result, = struct.unpack_from("<i", chunk, at + 20)
                route, = struct.unpack_from("<I", chunk, at + 60)
                if route & 0xF:
                    counts[0] += 1
                elif route >> 4 & 0xF:
                    counts[1] += 1
                elif route >> 9 & 1:
                    counts[2] += result == 0
                elif route >> 10 & 1:
                    counts[3] += result == 0
    return any(dropped)


def main():
    counts, dropped = [0, 0, 0, 0], False
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.tnj"))):
        dropped |= count(path, counts)
    print(*counts)
    return 3 if dropped else 0


if __name__ == "__main__":
    sys.exit(main())
