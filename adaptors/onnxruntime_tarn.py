# SPDX-License-Identifier: MIT
"""tarn as the external allocator of ONNX Runtime's CUDA execution provider.

    import onnxruntime, onnxruntime_tarn, tarn
    allocator = tarn.Allocator(tarn.Device("cuda:0"))
    session = onnxruntime.InferenceSession(
        "model.onnx", providers=[onnxruntime_tarn.provider(allocator)])

The addresses of C functions go into the options; ONNX Runtime's own arena is not used then. The
functions have no context, so one allocator serves the process. It must outlive every session.
"""

import ctypes

from tarn import _ffi


def address(function):
    """The address of a function of the library, as the text that the options want."""
    return str(ctypes.cast(function, ctypes.c_void_p).value)


def options(allocator, **more):
    """The options of the CUDA execution provider; `more` are others of it, like device_id."""
    _ffi.lib.tarn_onnx_use(allocator.handle)
    return {
        "gpu_external_alloc": address(_ffi.lib.tarn_onnx_alloc),
        "gpu_external_free": address(_ffi.lib.tarn_onnx_free),
        "gpu_external_empty_cache": address(_ffi.lib.tarn_onnx_empty_cache),
        **more,
    }


def provider(allocator, **more):
    """What InferenceSession takes in its list of providers."""
    return ("CUDAExecutionProvider", options(allocator, **more))


def end():
    """No session is left: the allocator may be closed."""
    _ffi.lib.tarn_onnx_use(None)
