# SPDX-License-Identifier: MIT
"""tree_screen.py TARN SNAPSHOTS: `tarn tree` in a pseudo-terminal, as it looks on the screen."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

try:
    import pyte
except ImportError:
    if os.access('/usr/bin/python3', os.X_OK) and 'TARN_SYSTEM_PYTHON' not in os.environ:
        os.environ['TARN_SYSTEM_PYTHON'] = '1'  # has what the system's packages bring
        os.execv('/usr/bin/python3', ['/usr/bin/python3', *sys.argv])
    print('skip: no python3-pyte here')
    print('0 passed, 0 failed, 1 skipped')
    sys.exit(0)

PATIENCE_S = 30  # a failure only: a test waits for what it expects
UP, DOWN, RIGHT, LEFT = b'\x1bOA', b'\x1bOB', b'\x1bOC', b'\x1bOD'
passed = failed = 0


def count(name, is_good, why=''):
    global passed, failed
    passed += bool(is_good)
    failed += not is_good
    if not is_good:
        print(f'FAIL {name}\n{why}')


class Screen(pyte.Screen):
    """Also scrolls within margins, as ncurses asks for."""

    def scroll_up(self, lines=1):
        y = self.cursor.y
        for _ in range(lines or 1):
            self.cursor.y = self.margins.bottom if self.margins else self.lines - 1
            self.index()
        self.cursor.y = y

    def scroll_down(self, lines=1):
        y = self.cursor.y
        for _ in range(lines or 1):
            self.cursor.y = self.margins.top if self.margins else 0
            self.reverse_index()
        self.cursor.y = y


class Stream(pyte.ByteStream):
    csi = {**pyte.ByteStream.csi, 'S': 'scroll_up', 'T': 'scroll_down'}
    events = pyte.ByteStream.events | {'scroll_up', 'scroll_down'}


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, arguments, columns=80, lines=24, **variables):
        self.screen = Screen(columns, lines)
        self.stream = Stream(self.screen)
        self.raw = b''
        self.main, child = pty.openpty()
        self.set_size(columns, lines)
        self.modes = termios.tcgetattr(child)
        environment = {'PATH': os.environ['PATH'], 'TERM': 'screen', 'LC_ALL': 'C.UTF-8'}
        environment.update(variables)
        self.program = subprocess.Popen(
            arguments, stdin=child, stdout=child, stderr=child, env=environment,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(child, termios.TIOCSCTTY, 0),
        )
        self.child = child

    def set_size(self, columns, lines):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack('HHHH', lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def read(self, seconds):
        """Shows what comes; false if nothing does."""
        if not select.select([self.main], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.main, 1 << 16)
        except OSError:
            data = b''
        self.raw += data
        self.stream.feed(data)
        return bool(data)

    def text(self):
        return '\n'.join(line.rstrip() for line in self.screen.display)

    def wait(self, name, condition):
        """Until the screen is as expected."""
        end = time.monotonic() + PATIENCE_S
        while not condition(self) and time.monotonic() < end and self.program.poll() is None:
            self.read(0.2)
        while self.read(0.05):
            pass
        count(name, condition(self), self.text())

    def press(self, keys):
        os.write(self.main, keys)

    def selected(self):
        """The line at the cursor: drawn in reverse, below the title."""
        for number in range(3, self.screen.lines):
            if all(self.screen.buffer[number][x].reverse for x in range(8)):
                return self.screen.display[number].rstrip()
        return ''

    def end(self, name, code):
        """The program ends with that code, and the terminal is as it was before."""
        try:
            found = self.program.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.program.kill()
            found = 'no end'
        while self.read(0.05):
            pass
        count(f'{name}: exit', found == code, f'{found}, expected {code}')
        # Echo and lines are on again, the screen from before is shown, the cursor is visible.
        count(f'{name}: modes', termios.tcgetattr(self.child)[:4] == self.modes[:4])
        tail = self.raw[self.raw.rfind(b'\x1b[?1049h'):]
        count(f'{name}: screen', tail.find(b'\x1b[?1049l') > 0, tail[-80:])
        os.close(self.child)
        os.close(self.main)

    def has(self, *texts):
        return all(text in self.text() for text in texts)


def walk(tarn, snapshots):
    terminal = Terminal([tarn, 'tree', os.path.join(snapshots, 'gpt2_varlen.pickle.gz')])
    terminal.wait('the peak', lambda t: t.has(
        'tarn tree', 'gpt2_varlen.pickle.gz', 'by calls, sorted by size',
        'peak: 9.72 GiB requested, 10.77 GiB reserved, event 5876 of 35860',
        '9.72 GiB 100.0% ██████      772  ▾ total', '▾ training.py:41:train_lm > …', 'q quit'))
    count('no line is longer', all(len(line) <= 80 for line in terminal.text().split('\n')))
    count('total is selected', 'total' in terminal.selected(), terminal.selected())
    terminal.press(DOWN + LEFT)
    terminal.wait('folded', lambda t: t.has('▸ training.py:181') and not t.has('train_lm >'))
    terminal.press(RIGHT)
    terminal.wait('unfolded', lambda t: t.has('▾ training.py:181', 'training.py:41:train_lm'))
    terminal.press(b'/ADAM.py:178')
    terminal.wait('typing', lambda t: t.has('/ADAM.py:178') and 'adam.py:178' in t.selected())
    terminal.press(b'\r')
    terminal.wait('found', lambda t: t.has('? help') and 'adam.py:178' in t.selected())
    terminal.press(b's')
    terminal.wait('sorted', lambda t: t.has('sorted by count') and 'adam.py:178' in t.selected())
    terminal.press(b'?')
    terminal.wait('help', lambda t: t.has('unfold, or go in', 'type a time point', 'q        '))
    terminal.press(b'q')
    terminal.wait('help goes', lambda t: t.has('arrows move and fold'))
    terminal.press(b'3')
    terminal.wait('categories', lambda t: t.has('by category', 'activation', 'optimizer'))
    terminal.press(b'/optim\r' + RIGHT)
    terminal.wait('a category unfolds', lambda t: t.has('▾ optimizer', 'training.py:181'))
    terminal.press(b'1]')
    terminal.wait('a step', lambda t: t.has('event 8908 of 35860: 1.71 GiB requested'))
    terminal.press(b'tend\r')
    terminal.wait('typed time', lambda t: t.has('end: ', 'event 35859 of 35860'))
    terminal.press(b'tnever\r')
    terminal.wait('bad time', lambda t: t.has('no time point; allowed: peak, reserved-peak'))
    terminal.press(b'o')
    terminal.wait('no failure', lambda t: t.has('no such failure', 'end: '))
    terminal.set_size(120, 40)
    terminal.wait('a wide window', lambda t: t.has('████████████ ') and len(t.screen.display) == 40)
    terminal.set_size(30, 8)
    terminal.wait('a narrow window', lambda t: t.has('100.0%'))
    terminal.set_size(2, 1)
    terminal.read(0.5)
    terminal.set_size(80, 24)
    terminal.wait('the old window', lambda t: t.has('no such failure', '▾ total'))
    terminal.press(b'q')
    terminal.end('q', 0)


def colours(tarn, snapshots):
    path = os.path.join(snapshots, 'tiny.pickle.gz')
    for name, variables, has_any in (('colour', {}, True), ('NO_COLOR', {'NO_COLOR': '1'}, False)):
        terminal = Terminal([tarn, 'tree', path], **variables)
        terminal.wait(name, lambda t: t.has('total', 'q quit'))
        colours_seen = {
            terminal.screen.buffer[y][x].fg for y in range(24) for x in range(80)
        } - {'default'}
        count(f'{name}: colours', bool(colours_seen) == has_any, colours_seen)
        terminal.press(b'q')
        terminal.end(name, 0)


def others(tarn, snapshots):
    path = os.path.join(snapshots, 'oom.pickle.gz')
    terminal = Terminal([tarn, 'tree', '--by', 'stream', path], LC_ALL='C')
    terminal.wait('ASCII', lambda t: t.has('+ stream', '- total', '######'))
    terminal.press(b'o')
    terminal.wait('a failed request', lambda t: t.has('oom:1: '))
    terminal.press(b'q')
    terminal.end('ASCII', 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        terminal = Terminal([tarn, 'tree', path])
        terminal.wait('before a signal', lambda t: t.has('total', 'q quit'))
        terminal.program.send_signal(number)
        terminal.end(f'signal {number}', -number)
    with open(path, 'rb') as file:  # keys come from the terminal
        terminal = Terminal(['sh', '-c', '"$1" tree - <"$2"', 'sh', tarn, path])
        terminal.wait('standard input', lambda t: t.has('total', 'q quit'))
        terminal.press(b'q')
        terminal.end('standard input', 0)
    result = subprocess.run([tarn, 'tree', path], capture_output=True, text=True, check=False)
    count('without a terminal', result.returncode == 0 and ' total\n' in result.stdout)


def main():
    tarn, snapshots = sys.argv[1:]
    walk(tarn, snapshots)
    colours(tarn, snapshots)
    others(tarn, snapshots)
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
