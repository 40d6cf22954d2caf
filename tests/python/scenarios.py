"""One situation an argument, each with allocations whose chains probe.c writes down: scenarios.py NAME FILE. FILE gets the process's number appended, so that
forked and spawned children have files of their own."""
import atexit
import multiprocessing
import os
import sys
import threading

import probe

name, base = sys.argv[1], sys.argv[2]
number = [os.getpid() % 30000 * 100000]


def alloc(when=0):
    number[0] += 1
    probe.alloc(number[0], when)


def opened():
    number[0] = os.getpid() % 30000 * 100000
    probe.open(f"{base}.{os.getpid()}")


def deep(n):
    if n:
        deep(n - 1)
    else:
        alloc()
        alloc(1)


def recursion():
    sys.setrecursionlimit(20000)
    threading.stack_size(256 << 20)
    for target in (lambda: deep(5000),):
        t = threading.Thread(target=target)
        t.start()
        t.join()
    deep(400)


def reuse():
    """Functions made at the same address with names of the same length, called from the same place."""
    for i in range(20000):
        space = {"alloc": alloc}
        exec(f"def f{i:05d}():\n alloc({i % 3})\n", space)
        space[f"f{i:05d}"]()
        if i % 7 == 0:
            code = compile("\n" * (i % 5) + "alloc()\n", f"<{i:05d}>", "exec")
            exec(code, space)


def same_names():
    """Code that differs in its lines alone."""
    for i in range(3000):
        space = {"alloc": alloc}
        exec("def f():\n" + " pass\n" * (i % 4) + " alloc(" + "0" + ")\n", space)
        space["f"]()


def replaced():
    """Code at the same address whose parts stand at the same addresses too, and say something else."""
    import types

    def base():
        alloc()
    for i in range(5000):
        types.FunctionType(base.__code__.replace(co_filename=f"file{i:05d}.py"), globals())()
    for i in range(5000):
        types.FunctionType(base.__code__.replace(co_name=f"name{i:05d}"), globals())()
    for i in range(3000):
        types.FunctionType(base.__code__.replace(co_firstlineno=100 + i % 50), globals())()


def texts():
    """Names that are not ASCII, file names that are no UTF-8, long ones, a code object without lines."""
    for source, file in (("def gr\u00f6\u00dfe(): alloc()\ngr\u00f6\u00dfe()", "stra\u00dfe.py"), ("def \u6570(): alloc()\n\u6570()", "\u6570/\u5b57.py"),
                         ("def \U00010400(): alloc()\n\U00010400()", "x.py"), ("alloc()", os.fsdecode(b"bad\xff\xfe.py")),
                         ("class \u00c5:\n def m(self): alloc()\n\u00c5().m()", "a b\tc.py")):
        exec(compile(source, file, "exec"), {"alloc": alloc})
    f = (lambda: alloc())
    exec(f.__code__.replace(co_filename="replaced.py"), {"alloc": alloc})


def traced():
    def tracer(frame, event, arg):
        return tracer
    sys.settrace(tracer)
    deep(3)
    sys.settrace(None)
    sys.setprofile(lambda *a: None)
    deep(3)
    sys.setprofile(None)

    def allocating(frame, event, arg):
        sys.settrace(None)
        alloc()
        alloc(1)
        sys.settrace(allocating)
        return None
    sys.settrace(allocating)
    deep(2)
    sys.settrace(None)


def debugged():
    import bdb

    class Stepper(bdb.Bdb):
        def user_line(self, frame):
            alloc()
            self.set_step()
    Stepper().runcall(deep, 2)


def native_threads():
    for i in range(20):
        number[0] += 10
        first = number[0]
        number[0] += 2
        probe.native_thread(first, lambda: alloc())


class AtTeardown:
    def __init__(self):
        self.alloc, self.number = probe.alloc, number

    def __del__(self):
        self.number[0] += 1
        self.alloc(self.number[0])


def at_exit():
    atexit.register(alloc)
    atexit.register(deep, 3)
    t = threading.Thread(target=deep, args=(2,))
    t.start()
    sys.kept = AtTeardown()
    globals()["kept"] = AtTeardown()


def daemons():
    for _ in range(3):
        threading.Thread(target=probe.spin, args=(1 << 40,), daemon=True).start()
    deep(2)
    import time
    time.sleep(0.02)


def child(n):
    opened()
    deep(n)


def forks():
    """The parent has no CUDA yet: its children record by themselves."""
    for i in range(4):
        pid = os.fork()
        if pid == 0:
            child(i)
            os._exit(0)
        os.waitpid(pid, 0)
    t = threading.Thread(target=fork_in_thread)
    t.start()
    t.join()
    for method in ("fork", "spawn"):
        p = multiprocessing.get_context(method).Process(target=child, args=(3,))
        p.start()
        p.join()
        assert p.exitcode == 0
    opened()
    deep(1)


def fork_in_thread():
    pid = os.fork()
    if pid == 0:
        child(2)
        os._exit(0)
    os.waitpid(pid, 0)


def forks_late():
    """The parent has CUDA: its children only forward, and end well."""
    opened()
    deep(1)
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            probe.spin(100)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    deep(1)


def subinterpreters():
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters
    deep(1)
    script = f"import sys; sys.path[:0] = {sys.path!r}\nimport probe\ndef inner(n):\n probe.alloc(n)\n"
    for i in range(3):
        inner = interpreters.create()
        number[0] += 10
        interpreters.run_string(inner, script + f"inner({number[0]})\ninner({number[0] + 1})\n")
        number[0] += 10
        deep(1)
        interpreters.destroy(inner)
    deep(1)


def signals():
    import signal
    signal.signal(signal.SIGALRM, lambda s, f: alloc())
    for _ in range(50):
        os.kill(os.getpid(), signal.SIGALRM)
        deep(1)


if __name__ == "__main__":
    if name not in ("forks", "forks_late"):
        opened()
    globals()[name]()
