"""The CUDA Toolkit as an external repository.

The toolkit is used where it is installed: CUDA_HOME names it, else
/usr/local/cuda. Its folders are linked, not copied, and a missing piece stops
the build with one line that names the variable.
"""

# Each entry: the name in the repository, and where a toolkit may keep it.
_FILES = {
    "cuda.h": ["include/cuda.h"],
    "cuda_runtime_api.h": ["include/cuda_runtime_api.h"],
    "libcudart.so": ["lib64/libcudart.so", "lib/libcudart.so"],
    "libcudart_static.a": ["lib64/libcudart_static.a", "lib/libcudart_static.a"],
    "stubs/libcuda.so": ["lib64/stubs/libcuda.so", "lib/stubs/libcuda.so"],
    "nvcc": ["bin/nvcc"],
}

def _find(ctx, home, name, places):
    for place in places:
        path = ctx.path(home + "/" + place)
        if path.exists:
            return path
    fail("CUDA_HOME: no %s in the CUDA Toolkit at %s; set CUDA_HOME to a complete toolkit." %
         (places[0], home))

def _cuda_repository_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "") or "/usr/local/cuda"
    if not ctx.path(home).exists:
        fail("CUDA_HOME: there is no CUDA Toolkit at %s; set CUDA_HOME to where it is installed." % home)

    found = {name: _find(ctx, home, name, places) for name, places in _FILES.items()}
    for name in ["libcudart.so", "libcudart_static.a", "stubs/libcuda.so"]:
        ctx.symlink(found[name], "lib/" + name)
    ctx.symlink(found["libcudart.so"].dirname, "lib64")
    for folder in ["bin", "include", "nvvm"]:
        if ctx.path(home + "/" + folder).exists:
            ctx.symlink(home + "/" + folder, folder)
    ctx.file("BUILD", ctx.read(Label("//third_party/cuda:cuda.BUILD")), executable = False)

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    environ = ["CUDA_HOME"],
    local = True,
    doc = "Makes @cuda from the toolkit that CUDA_HOME names.",
)
