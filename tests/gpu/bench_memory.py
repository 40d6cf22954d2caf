"""What a process takes of the first visible device, at its highest, by NVML from another process. Where there is no NVML the figures are None."""
import contextlib
import ctypes
import os
import threading
import types

PERIOD_S = 0.002
UNKNOWN = 2**64 - 1


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]


class Device:
    """The device that CUDA calls 0. One thread samples at a time."""

    def __init__(self):
        self.handle = None
        try:
            self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        handle, first = ctypes.c_void_p(), os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
        if self.nvml.nvmlInit_v2() != 0:
            return
        if first.isdigit() or not first:
            code = self.nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(first or 0)), ctypes.byref(handle))
        else:
            code = self.nvml.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(handle))
        if code == 0:
            self.handle = handle

    def used(self):
        """Bytes in use on the device, or None."""
        memory = Memory()
        if self.handle is None or self.nvml.nvmlDeviceGetMemoryInfo(self.handle, ctypes.byref(memory)) != 0:
            return None
        return memory.used

    def of_process(self, pid):
        """Bytes of a process, or None where NVML does not list it: in a container it has another number there."""
        count, rows = ctypes.c_uint(64), (Process * 64)()
        ask = getattr(self.nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None) if self.handle is not None else None
        if ask is None or ask(self.handle, ctypes.byref(count), rows) != 0:
            return None
        return next((row.used for row in rows[: count.value] if row.pid == pid and row.used != UNKNOWN), None)

    @contextlib.contextmanager
    def sampled(self, pid):
        """Samples while the block runs; what it gives has `figures` when the block is over: {"device", "process"}, bytes or None."""
        base, over, peak = self.used(), threading.Event(), types.SimpleNamespace(figures={"device": None, "process": None})

        def note(name, value):
            if value:
                peak.figures[name] = max(peak.figures[name] or 0, value)

        def sample():
            used = self.used()
            if used is not None and base is not None:
                note("device", max(0, used - base))
            note("process", self.of_process(pid))

        def loop():
            while not over.wait(PERIOD_S):
                sample()

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield peak
            sample()  # what is still there counts, however short the block was
        finally:
            over.set()
            thread.join()
