# SPDX-License-Identifier: MIT
"""columns.py TARN SNAPSHOTS: tables in pseudo-terminals of 80 and 160 columns, and their colours.

No line may be longer than the terminal, and the wide one must show more of the labels."""

import fcntl
import os
import pty
import re
import struct
import sys
import termios

NARROW, WIDE = 80, 160
STYLE = re.compile(r'\x1b\[[0-9;]*m')
RECORDINGS = ('cudagraph', 'gpt2_varlen', 'multistream', 'oom', 'tiny')
LARGE = 'gpt2_varlen'  # for few commands: every internal check is on in tests
OF_STACKS = ('churn', 'leaks', 'live', 'peak', 'top')
ONE_FILE = [['churn'], ['fit'], ['frag'], ['info'], ['leaks'], ['live'], ['oom'], ['peak'],
            ['replay'], ['steps'], ['summary'], ['top']]
GROUPINGS = ('category', 'file', 'function')
GROUPED = [[command, '--by', by] for command in OF_STACKS for by in GROUPINGS]
SPECIAL = [*GROUPED, ['frag', '--units', 'bytes'], ['live', '--tree'], ['peak', '--full-stacks'],
           ['peak', '--tree'], ['peak', '--units', 'bytes'], ['scale'],
           ['steps', '--units', 'bytes'], ['top', '--tree'], ['top', '--units', 'bytes'],
           ['tune', '--each', '-q'], ['tune', '-q']]
COLOURED = [*ONE_FILE, ['scale'], ['tune', '-q']]
WITHOUT_TABLE = ('info', 'leaks', 'summary')  # nothing grows in that recording

passed = failed = 0


def count(name, is_good, why=''):
    global passed, failed
    passed += bool(is_good)
    failed += not is_good
    if not is_good:
        print(f'FAIL {name}\n{why}')


def output(tarn, arguments, columns):
    """What the program prints in a terminal of so many columns, without styles of the text."""
    child, file = pty.fork()
    if child == 0:
        os.environ.pop('COLUMNS', None)
        os.environ['TERM'] = 'xterm'
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 50, columns, 0, 0))
        os.execv(tarn, [tarn, *arguments])
    text = b''
    while True:
        try:
            read = os.read(file, 65536)
        except OSError:  # the child is gone
            break
        if not read:
            break
        text += read
    os.close(file)
    os.waitpid(child, 0)
    return text.decode('utf-8', 'replace').replace('\r\n', '\n')


def lines_of(text):
    """As a terminal shows them: what a progress line held is overwritten."""
    return [line.split('\r')[-1] for line in STYLE.sub('', text).split('\n')]


def fits(tarn, arguments, columns):
    text = output(tarn, [*arguments, '--no-pager', '--progress', 'never'], columns)
    long = [line for line in lines_of(text) if len(line) > columns]
    name = f'{" ".join(os.path.basename(word) for word in arguments)}, {columns} columns'
    count(name, len(text) > 0 and not long, '\n'.join(long[:3]) if text else 'prints nothing')
    return text


def frames_in(text):
    return len(re.findall(r'[^ ]+:[0-9]+:', text))


def main(tarn, folder):
    paths = {name: os.path.join(folder, f'{name}.pickle.gz') for name in RECORDINGS}
    for columns in (NARROW, WIDE):
        for command in ONE_FILE:
            for name, path in paths.items():
                if name != LARGE or command[0] in OF_STACKS:
                    fits(tarn, [*command, path], columns)
        for command in SPECIAL:
            fits(tarn, [*command, paths['oom']], columns)
        fits(tarn, ['diff', paths[LARGE], paths['oom']], columns)
        fits(tarn, ['ranks', *paths.values()], columns)
    for command in ('diff', 'live', 'oom', 'peak', 'top'):
        names = [LARGE, 'oom'] if command == 'diff' else ['oom']
        arguments = [command, *(['--at', 'peak'] if command == 'live' else []),
                     *(paths[name] for name in names)]
        narrow, wide = (frames_in(fits(tarn, arguments, columns)) for columns in (NARROW, WIDE))
        count(f'{command} shows more frames in {WIDE} columns', wide > narrow, f'{narrow}, {wide}')
    for command in COLOURED:
        if command[0] not in WITHOUT_TABLE:
            text = output(tarn, [*command, '--no-pager', '--color', 'always', paths['oom']], NARROW)
            count(f'{command[0]} --color always', STYLE.search(text), text[:400])
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
