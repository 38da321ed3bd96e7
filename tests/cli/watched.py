# SPDX-License-Identifier: MIT
"""A process that publishes its counters, for tests of what reads them."""

import atexit
import os
import signal
import subprocess

CONTROLLED = 128  # in a page: whether the process takes requests
SLOT = 4096  # where the first allocator of a page begins


class Watched:
    """A server that publishes, with a folder for it."""

    def __init__(self, path, folder, device='sim:16GiB', **variables):
        self.process = subprocess.Popen(
            [path, device, '600'], stdout=subprocess.PIPE,
            env={**os.environ, 'XDG_RUNTIME_DIR': folder, **variables},
        )
        atexit.register(self.end)  # also of a test that fails: ctest waits for what has its output
        self.process.stdout.readline()
        self.pid = self.process.pid
        self.page = os.path.join(folder, 'tarn', f'{self.pid}.page')

    def send(self, number):
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitpid(self.pid, os.WUNTRACED)  # until it has stopped

    def write(self, offset, data):
        """Into its page."""
        with open(self.page, 'r+b') as file:
            file.seek(offset)
            file.write(data)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
