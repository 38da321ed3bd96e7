# SPDX-License-Identifier: MIT
"""One adaptor with its real library on a GPU: python3 adaptors_cases.py PEER [FOLDER].

Exit status 0: it works; 1: it does not; 77: the library is not installed (the reason is printed).
"""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "adaptors")]

MIB = 1 << 20


def skip(reason):
    print(f"skip: {reason}")
    sys.exit(77)


def imported(name):
    try:
        return __import__(name)
    except ImportError as error:
        skip(f"{name} is not installed: {error}")


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def opened():
    import tarn

    device = tarn.Device("cuda:0")
    return device, tarn.Allocator(device, "")


def cupy_case():
    cupy = imported("cupy")
    import cupy_tarn

    device, allocator = opened()
    for with_streams in (False, True):
        with cupy_tarn.using(allocator, with_streams):
            ones = cupy.ones(MIB, dtype=cupy.float32)
            expect(allocator.memory_allocated() >= 4 * MIB, "CuPy's array is ours")
            expect(float((ones * 2).sum()) == 2 * MIB, "and it computes")
            if with_streams:
                with cupy.cuda.Stream(non_blocking=True) as stream:
                    other = cupy.arange(1000, dtype=cupy.float32)
                    expect(float(other.sum()) == 499500.0, "on a stream of its own")
                    stream.synchronize()
                    del other
            cupy.cuda.Device().synchronize()
            del ones
    import gc

    gc.collect()
    expect(allocator.memory_allocated() == 0, "all of it went back")
    print(f"cupy {cupy.__version__}")


def numba_case():
    import numpy

    if not hasattr(numpy, "row_stack"):  # which Numba asks for and newer NumPy no longer has
        numpy.row_stack = numpy.vstack
    numba = imported("numba")

    import numba_tarn

    device, allocator = opened()
    numba_tarn.use(allocator)
    from numba import cuda

    @cuda.jit
    def double(values):
        at = cuda.grid(1)
        if at < values.size:
            values[at] *= 2

    on_device = cuda.to_device(numpy.arange(1000, dtype=numpy.float32))
    expect(allocator.memory_allocated() >= 4000, "Numba's array is ours")
    double[8, 128](on_device)
    expect(on_device.copy_to_host()[999] == 1998.0, "and it computes")
    cuda.synchronize()
    del on_device
    import gc

    gc.collect()
    expect(allocator.memory_allocated() == 0, "all of it went back")
    print(f"numba {numba.__version__}")


def relu_model(path):
    """A model of one node, written without the onnx package: ModelProto by hand."""

    def field(number, wire, payload):
        return bytes([number << 3 | wire]) + payload

    def text(number, value):
        data = value if isinstance(value, bytes) else value.encode()
        expect(len(data) < 128, "short enough for one byte of length")
        return field(number, 2, bytes([len(data)]) + data)

    shape = text(1, field(1, 0, b"\x40"))  # one dimension of 64
    tensor = field(1, 0, b"\x01") + text(2, shape)  # float
    value = text(2, text(1, tensor))
    node = text(1, "x") + text(2, "y") + text(4, "Relu")
    graph = text(1, node) + text(2, "g") + text(11, text(1, "x") + value)
    graph += text(12, text(1, "y") + value)
    opset = text(1, "") + field(2, 0, b"\x0d")
    model = field(1, 0, b"\x08") + field(7, 2, bytes([len(graph)]) + graph) + text(8, opset)
    with open(path, "wb") as file:
        file.write(model)


def onnxruntime_case():
    onnxruntime = imported("onnxruntime")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        skip("onnxruntime is installed without the CUDA execution provider")
    import numpy

    import onnxruntime_tarn

    device, allocator = opened()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "relu.onnx")
        relu_model(path)
        session = onnxruntime.InferenceSession(
            path, providers=[onnxruntime_tarn.provider(allocator)]
        )
        if session.get_providers()[0] != "CUDAExecutionProvider":
            skip("onnxruntime cannot load its CUDA execution provider here")
        given = numpy.linspace(-1, 1, 64, dtype=numpy.float32)
        found = session.run(None, {"x": given})[0]
    expect(allocator.stats()["allocation"]["all"]["allocated"] > 0, "its memory is ours")
    expect(bool((found == numpy.maximum(given, 0)).all()), "and it computes")
    del session
    onnxruntime_tarn.end()
    print(f"onnxruntime {onnxruntime.__version__}")


def jax_case():
    imported("jax")
    skip("jax has no interface for an allocator in the program: tests/gpu/run_program.sh runs it")


CASES = {
    "cupy": cupy_case,
    "numba": numba_case,
    "onnxruntime": onnxruntime_case,
    "jax": jax_case,
}

if __name__ == "__main__":
    CASES[sys.argv[1]]()
