# SPDX-License-Identifier: MIT
"""Exceptions for the library's status codes."""


class Error(RuntimeError):
    """A call of libtarn failed. `status` is the name of its code, e.g. "TARN_ERR_DEVICE"."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class OutOfMemoryError(Error):
    """The device has no memory left; the text is PyTorch's message."""


class InvalidArgumentError(Error, ValueError):
    """Settings that cannot be parsed, or an argument that the call does not allow."""
