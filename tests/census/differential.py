#!/usr/bin/env python3
"""Holds the census's lexer against clang's on every source file of trees.

usage: differential.py DUMP_NAMES [--mutate SEED] TREE...

Both list the names (identifiers and keywords) outside comments and literals, with
their lines; the lists must be equal. clang is asked for raw tokens, which need no
headers and no macros. With --mutate each file is read with bytes changed, taken
out and put in, quotes, comment marks and line splices above all.
Exit code 0: all equal; 1: not, each file named; 2: wrong arguments, no clang.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

EXTENSIONS = (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".hxx", ".inl", ".ipp")
PIECES = [b'"', b"'", b"/*", b"*/", b"//", b"\\\n", b"\\\r\n", b"\\ \n", b"\n", b"\r\n", b'R"(', b')"', b'u8R"x(', b'L"', b"u'",
          b"1'0", b"#", b"\n#if 0\n", b"\\", b"\\\"", b"0x'f", b"'a'", b"1e+", b".5", b"$"]
# The tokens of the dump that matter, as they are and, behind UnClean, with the splices inside them and in front of them.
TOKEN = re.compile(rb"^(raw_identifier|hash|less) '([^']*)'\t(?: \[[A-Z][A-Za-z]+\])*(?: \[UnClean='([^']*)'\])?\tLoc=<[^\n]*:(\d+):\d+>$", re.M)
SPLICE = re.compile(rb"\\[ \t\f\v]*(?:\r\n|\n|\r)")
# A raw string whose delimiter is none is no program; each compiler recovers in its own way.
NO_DELIMITER = re.compile(rb"R\"(?![^()\\\s\"]{0,16}\()")
# Right behind a literal clang takes these for suffixes, the census for names.
LIBRARY_SUFFIXES = {b"s", b"sv", b"i", b"if", b"il", b"h", b"min", b"ms", b"us", b"ns", b"y", b"d"}


def clang_names(path):
    # As C++ whatever the name: clang knows raw strings and digit separators only there, the census everywhere.
    dump = subprocess.run(["clang", "-cc1", "-dump-raw-tokens", "-x", "c++", "-std=c++17", path], stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, check=False).stderr
    names, state, header_line = [], 0, 0
    for kind, text, raw, line in ((m[1], m[2], m[3] or b"", int(m[4])) for m in TOKEN.finditer(dump)):
        if state == 3 and line == header_line:
            continue  # <...> of an #include: clang's raw mode does not know that it is one token
        if kind == b"hash":
            state, header_line = 1, line
        elif state == 1 and kind == b"raw_identifier" and text in (b"include", b"include_next", b"import"):
            state = 2
        elif state == 2 and kind == b"less":
            state = 3
        else:
            state = 0
        if kind == b"raw_identifier":
            while (m := SPLICE.match(raw)) is not None:
                raw, line = raw[m.end():], line + 1
            names.append((line, SPLICE.sub(b"", text)))
    return names


def our_names(dump_names, path):
    lines = subprocess.run([dump_names, path], stdout=subprocess.PIPE, check=True).stdout.split(b"\n")[:-1]
    return [(int(line), name) for line, name in (text.split(b" ", 1) for text in lines)]


def mutated(data, rng):
    # Without its includes and without characters beyond ASCII: in pieces they are nothing that both sides could agree on.
    data = bytearray(re.sub(rb"[\x80-\xff]", b"e", re.sub(rb"(?m)^[ \t]*#[ \t]*include.*$", b"", data)))
    for _ in range(rng.randint(1, 40)):
        at = rng.randrange(len(data) + 1)
        what = rng.random()
        if what < 0.6:
            data[at:at] = rng.choice(PIECES)
        elif what < 0.8:
            del data[at:at + rng.randint(1, 20)]
        else:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other:other + rng.randint(1, 60)]
    return bytes(data)


def sources(trees):
    for tree in trees:
        for folder, _, files in sorted(os.walk(tree, followlinks=True)):
            for name in sorted(files):
                if name.endswith(EXTENSIONS):
                    yield os.path.join(folder, name)


def main(arguments):
    if shutil.which("clang") is None or len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    dump_names, *trees = arguments
    seed = None
    if trees[0] == "--mutate":
        seed, trees = trees[1], trees[2:]
    count = names = different = 0
    with tempfile.TemporaryDirectory() as work:
        for path in sources(trees):
            read = path
            if seed is not None:
                with open(path, "rb") as file:
                    data = file.read()
                    rng = random.Random(seed + path)
                for _ in range(20):
                    changed = mutated(data, rng)
                    if not NO_DELIMITER.search(changed):
                        break
                else:
                    continue
                read = os.path.join(work, "mutated" + os.path.splitext(path)[1])
                with open(read, "wb") as file:
                    file.write(changed)
            theirs, ours = clang_names(read), our_names(dump_names, read)
            count, names = count + 1, names + len(ours)
            if seed is not None:
                ours, theirs = ([name for name in side if name[1] not in LIBRARY_SUFFIXES] for side in (ours, theirs))
            if ours != theirs:
                different += 1
                first = next((a, b) for a, b in zip(ours + [None], theirs + [None]) if a != b)
                print(f"{path}: ours {first[0]}, clang's {first[1]}")
                if seed is not None and os.environ.get("KEEP"):
                    shutil.copy(read, os.path.join(os.environ["KEEP"], f"{count}{os.path.splitext(path)[1]}"))
    print(f"{count} files, {names} names, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
