"""Allocates N times from places that chance chooses: functions, methods, closures, generators, coroutines, comprehensions, callbacks of C code, finalisers,
functions made by exec and thrown away, deep recursion, exceptions on their way, several threads. Usage: random_calls.py N THREADS SEED FILE"""
import functools
import gc
import itertools
import random
import sys
import threading

import probe

count, threads, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
probe.open(sys.argv[4])
sizes = itertools.count(1)


def leaf(r):
    probe.alloc(next(sizes), r.randrange(3))


def two_lines(r):
    if r.random() < 0.5:
        probe.alloc(next(sizes),
                    r.randrange(3))
    else: probe.alloc(next(sizes), 1); probe.alloc(next(sizes), 0)


class Thing:
    def method(self, r, depth):
        step(r, depth)

    @classmethod
    def on_class(cls, r, depth):
        step(r, depth)

    @staticmethod
    def alone(r, depth):
        return step(r, depth)

    @property
    def value(self):
        step(self.r, self.depth)

    def __getattr__(self, name):
        if name.startswith("x"):
            step(self.r, self.depth)
        return 0

    def __lt__(self, other):
        step(self.r, 0)
        return False


class Dying:
    def __init__(self, r):
        self.r = r
        self.me = self

    def __del__(self):
        step(self.r, 0)


def generator(r, depth):
    for _ in range(r.randrange(1, 3)):
        step(r, depth)
        yield 1
    yield from other_generator(r, depth)


def other_generator(r, depth):
    step(r, depth)
    yield 2


async def coroutine(r, depth):
    step(r, depth)
    await another(r, depth)


async def another(r, depth):
    step(r, depth)


def run_coroutine(c):
    try:
        c.send(None)
    except StopIteration:
        pass


def made(r, depth):
    """A function whose code lives as long as this call; the next one is often made at the same address."""
    n = r.randrange(1 << 30)
    space = {"step": step, "probe": probe, "sizes": sizes, "r": r, "depth": depth}
    pad = "\n" * r.randrange(5)
    exec(compile(f"{pad}def name{n:010d}(a):\n  b = a\n  {'c = a' if n % 2 else 'pass'}\n  step(r, depth)\nname{n:010d}(1)\n", f"<file {n % 1000:04d}>", "exec"), space)


def raising(r, depth):
    try:
        try:
            raise KeyError(depth)
        except KeyError:
            step(r, depth)
            raise ValueError
        finally:
            step(r, depth)
    except ValueError as e:
        step(r, 0)
        e.__traceback__ = None


def deep(r, n):
    if n:
        return deep(r, n - 1)
    leaf(r)


def decorated(f):
    @functools.wraps(f)
    def wrapper(*a, **k):
        return f(*a, **k)
    return wrapper


@decorated
def behind(r, depth):
    step(r, depth)


def thing(r, depth):
    t = Thing()
    t.r, t.depth = r, depth
    return t


def with_cells(r, depth):
    kept = [depth]

    def inner():
        nonlocal kept
        kept = kept + [1]
        step(r, kept[0])
    inner()


KINDS = [
    lambda r, d: leaf(r),
    lambda r, d: two_lines(r),
    lambda r, d: step(r, d),
    lambda r, d: Thing().method(r, d),
    lambda r, d: Thing.on_class(r, d),
    lambda r, d: Thing.alone(r, d),
    lambda r, d: thing(r, d).value,
    lambda r, d: thing(r, d).xyz,
    lambda r, d: sorted([thing(r, d), thing(r, d)]),
    lambda r, d: list(generator(r, d)),
    lambda r, d: next(generator(r, d)),
    lambda r, d: run_coroutine(coroutine(r, d)),
    lambda r, d: made(r, d),
    lambda r, d: raising(r, d),
    lambda r, d: deep(r, r.randrange(60)),
    lambda r, d: behind(r, d),
    lambda r, d: with_cells(r, d),
    lambda r, d: list(map(lambda x: step(r, d), [1])),
    lambda r, d: [step(r, d) for _ in range(2)],
    lambda r, d: {step(r, d): 1 for _ in range(1)},
    lambda r, d: functools.partial(step, r)(d),
    lambda r, d: eval("step(r, d)", {"step": step}, {"r": r, "d": d}),
    lambda r, d: Dying(r) and None,
    lambda r, d: gc.collect(0) and None,
]


def step(r, depth):
    if depth <= 0:
        leaf(r)
    else:
        r.choice(KINDS)(r, depth - 1)


def run(n):
    r = random.Random(seed * 1000 + n)
    while next_free() < count:
        step(r, r.randrange(1, 14))


def next_free():
    return int(repr(sizes)[6:-1])


workers = [threading.Thread(target=run, args=(i,)) for i in range(1, threads)]
for w in workers:
    w.start()
run(0)
for w in workers:
    w.join()
probe.alloc(next(sizes), 0)
