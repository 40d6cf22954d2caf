"""A PyTorch script that knows nothing of Tenure: convolution, matrix products, a small MLP captured
in a CUDA graph and replayed, pinned copies, several streams, the default caching allocator.

Prints one `name=sha256` line per result and the allocator's own figures; two bare runs print the
same bytes, so a recorded run can be compared with a bare one. cuDNN attention is switched off: it is
not bit-stable from run to run and would put the blame on the wrong place.
"""
import ctypes
import hashlib
import os

# Read by cuBLAS when its handle is made, so it must be set before torch is imported.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402

torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.enable_cudnn_sdp(False)
torch.set_grad_enabled(False)

DEVICE = torch.device("cuda", 0)


def show(name, tensor):
    """Prints the digest of a tensor's bytes."""
    host = tensor.detach().contiguous().cpu()
    data = ctypes.string_at(host.data_ptr(), host.numel() * host.element_size())
    print(f"{name}={hashlib.sha256(data).hexdigest()[:32]}", flush=True)


def random_on_host(*shape):
    return torch.randn(*shape, dtype=torch.float32)


def convolution():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 3, stride=2, padding=1),
        torch.nn.ReLU(),
    ).to(DEVICE)
    image = random_on_host(4, 3, 64, 64).to(DEVICE)
    show("conv.float32", net(image))
    show("conv.float16", net.half()(image.half()))


def products():
    a = random_on_host(384, 512).to(DEVICE)
    b = random_on_host(512, 256).to(DEVICE)
    show("matmul.float32", a @ b)
    show("matmul.bfloat16", a.bfloat16() @ b.bfloat16())
    show("bmm.float32", torch.bmm(a.view(8, 48, 512), b.view(1, 512, 256).expand(8, 512, 256)))


def graph():
    mlp = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)
    ).to(DEVICE)
    static_in = random_on_host(32, 256).to(DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            mlp(static_in)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        hidden = mlp(static_in)
        static_out = hidden * 2 + static_in
    for step in range(5):
        static_in.copy_(random_on_host(32, 256))
        captured.replay()
        torch.cuda.synchronize()
        show(f"graph.replay{step}", static_out)
    captured.reset()


def pinned():
    source = random_on_host(1 << 18).pin_memory()
    on_device = source.to(DEVICE, non_blocking=True)
    back = torch.empty(1 << 18, dtype=torch.float32, pin_memory=True)
    back.copy_(on_device * 3, non_blocking=True)
    torch.cuda.synchronize()
    show("pinned.roundtrip", back)


def streams():
    inputs = [random_on_host(300, 300).to(DEVICE) for _ in range(4)]
    torch.cuda.synchronize()
    lanes = [torch.cuda.Stream() for _ in range(4)]
    outputs = []
    for lane, value in zip(lanes, inputs):
        with torch.cuda.stream(lane):
            product = value @ value
            outputs.append((product.relu() + 1) @ value)
            product.record_stream(lane)
    for lane in lanes:
        torch.cuda.current_stream().wait_stream(lane)
    torch.cuda.synchronize()
    for index, output in enumerate(outputs):
        show(f"stream{index}", output)


def refused():
    """A request far above the card raises, and the allocator works afterwards."""
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device=DEVICE)
        print("refused=no")
    except torch.cuda.OutOfMemoryError:
        print("refused=yes")
    show("after_refusal", torch.ones(1 << 20, device=DEVICE) * 5)


def main():
    print(f"torch={torch.__version__}")
    print(f"device={torch.cuda.get_device_name(DEVICE)}")
    print(f"total_bytes={torch.cuda.get_device_properties(DEVICE).total_memory}")
    for part in (convolution, products, graph, pinned, streams, refused):
        part()
    torch.cuda.synchronize()
    print(f"allocated_bytes={torch.cuda.memory_allocated()}")
    print(f"peak_allocated_bytes={torch.cuda.max_memory_allocated()}")
    print(f"peak_reserved_bytes={torch.cuda.max_memory_reserved()}")
    print(f"segments={torch.cuda.memory_stats()['segment.all.allocated']}")
    torch.cuda.empty_cache()
    print("result=done")


if __name__ == "__main__":
    main()
