# SPDX-License-Identifier: MIT
"""watch.py TARN WATCHED: `tarn watch` of a process that runs, as text and in a pseudo-terminal."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import tree_screen
from tree_screen import DOWN, Terminal, count
from watched import CONTROLLED, SLOT, Watched


def run(tarn, folder, *arguments):
    result = subprocess.run(
        [tarn, 'watch', *arguments], capture_output=True, text=True, check=False,
        env={'PATH': os.environ['PATH'], 'XDG_RUNTIME_DIR': folder, 'LC_ALL': 'C.UTF-8'},
    )
    return result.returncode, result.stdout, result.stderr


def refused(name, tarn, folder, code, text, *arguments):
    """The program says one sentence, and nothing on standard output."""
    found, out, err = run(tarn, folder, *arguments)
    is_good = found == code and out == '' and text in err and err.count('\n') == 1
    count(name, is_good, f'{found} {out!r} {err!r}')


def size(text):
    number, unit = text.split()
    return float(number) * 1024 ** ['B', 'KiB', 'MiB', 'GiB', 'TiB'].index(unit)


# ---- once ----


def text_once(tarn, watched, folder):
    server = Watched(watched, folder)
    time.sleep(1.2)  # rows are counted once a second
    code, out, err = run(tarn, folder, '--once')
    count('once: exit', code == 0 and err == '', f'{code} {err}')
    wide = [line for line in out.split('\n') if len(line) > 80]
    count('once: 80 columns', not wide, wide)
    parts = ['PID PROGRAM', f'{server.pid} watched', 'device 0: 16.00 GiB', 'no limit',
             'allocated = cached', 'default large', '0x1000', '0x2000', '0x3000']
    missing = [part for part in parts if part not in out]
    count('once: parts', not missing, f'{missing}\n{out}')
    end = time.monotonic() + tree_screen.PATIENCE_S
    record = {'time_ns': 0, 'streams_time_ns': 1}
    while time.monotonic() < end and record['time_ns'] != record['streams_time_ns']:
        time.sleep(1.1)  # streams are counted again
        document = json.loads(run(tarn, folder, '--json', str(server.pid))[1])
        process = document['data']['processes'][0]
        record = process['allocators'][0]
    reserved = record['counters']['reserved_bytes']['all']['current']
    count('json: adds up', reserved == sum(row['reserved'] for row in record['streams']),
          f"{reserved} {record['streams']}")
    count('json: process', process['process'] == server.pid and process['answers'], process)
    shown = re.search(r'reserved in .*? segments, (\S+ \S+) cached', out)
    count('once: numbers', shown and 0 < size(shown.group(1)) < 16 << 30, out)
    for target in ('watch', 'watched', 'all', str(server.pid)):
        count(f'once: {target}', run(tarn, folder, '--once', target)[0] == 0)
    refused('another name', tarn, folder, 6, 'whose name contains "other"', 'other')
    refused('another pid', tarn, folder, 6, 'process 1 publishes nothing', '1')
    server.end()
    refused('a dead process', tarn, folder, 6, f'process {server.pid} has ended', str(server.pid))
    page = os.path.join(folder, 'tarn', f'{server.pid}.page')
    count('a dead page stays for its name', os.path.exists(page))
    refused('nobody', tarn, folder, 6, 'start one with TARN_WATCH=1')
    count('a dead page is removed', not os.path.exists(page))


def several(tarn, watched, folder):
    servers = [Watched(watched, folder, TARN_ALLOC_CONF=conf) for conf in ('', 'policy:compact')]
    out = run(tarn, folder, '--once', '--sort', 'pid')[1]
    rows = [line.split()[0] for line in out.split('\n')[1:3]]
    count('several: by pid', rows == [str(pid) for pid in sorted(s.pid for s in servers)], out)
    count('several: pages', 'pages of 2.00 MiB' in out, out)
    for server in servers:
        server.end()


def trouble(tarn, watched, folder):
    server = Watched(watched, folder)
    server.send(signal.SIGSTOP)
    begin = time.monotonic()
    code, out, _ = run(tarn, folder, '--once', str(server.pid))
    count('stopped: shown', code == 0 and 'does not answer' in out, out)
    count('stopped: at once', time.monotonic() - begin < 2, time.monotonic() - begin)
    server.send(signal.SIGCONT)
    server.end()
    small = Watched(watched, folder, 'sim:6200MiB')  # not every request fits
    end = time.monotonic() + tree_screen.PATIENCE_S
    while time.monotonic() < end and 'out of memory' not in out:
        out = run(tarn, folder, '--once')[1]
    parts = ['! out of memory', '% of the device is reserved', 'retries: the cache was emptied']
    count('out of memory', all(part in out for part in parts), out)
    small.end()


def hostile(tarn, watched, folder):
    server = Watched(watched, folder)
    page = server.page
    server.send(signal.SIGSTOP)

    server.write(48, b'\x1b[2Jevil\xff\n\0')  # the program's name
    with open(page, 'rb') as file:
        file.seek(SLOT)
        current = int.from_bytes(file.read(8), 'little')
    words = 8 + 8 + current % 2 * (6312 + 8)
    server.write(SLOT + words + 16, b'\xff' * 6000)  # numbers, names, rows
    code, out, err = run(tarn, folder, '--once')
    count('hostile numbers', code == 0 and '\x1b' not in out and '\\x1b[2J' in out, f'{out} {err}')
    json.loads(run(tarn, folder, '--json')[1])
    server.write(SLOT, (1 << 40).to_bytes(8, 'little'))  # a record that is never whole
    count('a record that changes', run(tarn, folder, '--once')[0] == 0)
    server.write(8, b'\x07')
    refused('another version', tarn, folder, 3, 'has version 7', str(server.pid))
    os.truncate(page, 20)
    refused('cut off', tarn, folder, 3, 'no page of counters', str(server.pid))
    os.chmod(os.path.join(folder, 'tarn'), 0o755)
    refused('open to others', tarn, folder, 4, 'is open to others')
    os.chmod(os.path.join(folder, 'tarn'), 0o700)
    server.send(signal.SIGKILL)
    server.end()
    os.unlink(page)


# ---- requests ----


def ask(tarn, folder, *arguments):
    result = subprocess.run(
        [tarn, *arguments], capture_output=True, text=True, check=False, cwd=folder,
        env={'PATH': os.environ['PATH'], 'XDG_RUNTIME_DIR': folder, 'LC_ALL': 'C.UTF-8'},
    )
    return result.returncode, result.stdout, result.stderr


def said(name, tarn, folder, code, text, *arguments):
    found, out, err = ask(tarn, folder, *arguments)
    is_good = found == code and out == '' and text in err and err.count('\n') == 1
    count(name, is_good, f'{found} {out!r} {err!r}')


def requests(tarn, watched, folder):
    tarn = os.path.abspath(tarn)
    server = Watched(watched, folder)
    pid = str(server.pid)
    path = os.path.join(folder, f'tarn-{pid}.pickle')
    code, out, err = ask(tarn, folder, 'dump', pid)
    count('dump', code == 0 and out == path + '\n' and os.path.getsize(path) > 100,
          f'{out} {err} {os.path.getsize(path)}')
    said('dump again', tarn, folder, 6, 'exists; -f replaces it', 'dump', pid)
    count('history on', ask(tarn, folder, 'control', pid, 'history', 'on')[0] == 0)
    time.sleep(0.3)
    count('dump -f', ask(tarn, folder, 'dump', pid, '-f')[0] == 0)
    out = ask(tarn, folder, 'info', path)[1]
    count('dump: events', re.search(r'[1-9]\d* events|events +[1-9]', out), out)
    count('history off', ask(tarn, folder, 'control', pid, 'history', 'off')[0] == 0)
    code, out, _ = ask(tarn, folder, 'control', pid, 'trim', '1GiB')
    count('trim', code == 0 and re.fullmatch(r'[678]\.\d\d GiB reserved\n', out), out)
    said('no size', tarn, folder, 2, 'such as 10GiB', 'control', pid, 'trim')
    said('no word', tarn, folder, 2, 'needs on or off', 'control', pid, 'history', 'maybe')
    said('no action', tarn, folder, 2, 'neither trim, history', 'control', pid, 'rest')
    said('no pool', tarn, folder, 2, 'such as 0,1', 'control', pid, 'sleep', '1')
    said('no such pool', tarn, folder, 6, 'no private pool (3, 4)', 'control', pid, 'wake', '3,4')
    count('by name', ask(tarn, folder, 'dump', 'watch', '-f', '-o', 'named.pickle.gz')[0] == 0)
    said('no such name', tarn, folder, 6, '0 processes that can be watched', 'dump', 'other')
    said('nobody there', tarn, folder, 6, 'publishes nothing', 'dump', '1')
    server.send(signal.SIGSTOP)
    said('no answer', tarn, folder, 6, 'does not answer', 'dump', pid, '-f', '--timeout', '0.3')
    server.end()
    count('the socket stays', os.path.exists(os.path.join(folder, 'tarn', f'{pid}.sock')))
    run(tarn, folder, '--once')
    count('the socket is removed', os.listdir(os.path.join(folder, 'tarn')) == [])


# ---- who holds most ----

# The screen cuts the function's name where numbers are wide.
SERVER_STACK = 'watched.c:'
TOP_ROW = r'^ +(?:\S+ [KMG]?i?B|-) +(\S+ [KMG]?i?B) .*  (\S.*)$'


def top_rows(text):
    """Bytes at the end by the last column, of what `tarn top` prints."""
    return {match.group(2): size(match.group(1))
            for match in re.finditer(TOP_ROW, text, re.MULTILINE)}


def holders_once(tarn, watched, folder):
    tarn = os.path.abspath(tarn)
    server = Watched(watched, folder)
    pid = str(server.pid)
    code, out, err = run(tarn, folder, '--once', '--holders', pid)
    count('holders: history is off', code == 0 and err == '' and
          f'"tarn control {pid} history on" switches it on' in out, f'{out} {err}')
    ask(tarn, folder, 'control', pid, 'history', 'on')
    end = time.monotonic() + tree_screen.PATIENCE_S
    out = ''
    while time.monotonic() < end and SERVER_STACK not in out:
        time.sleep(0.5)
        code, out, err = run(tarn, folder, '--once', '--holders', 'watched')
    rows = top_rows(out[out.find('who holds most'):])
    count('holders: exit', code == 0 and err == '', f'{code} {err}')
    count('holders: when', re.search(f'process {pid} .*as of [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\n',
                                     out), out)
    # The weights are from before the history, and nobody frees them.
    count('holders: weights', rows.get('(no frames)', 0) >= 6 << 30, rows)
    ask(tarn, folder, 'dump', pid, '-f', '-o', 'now.pickle')
    top = ask(tarn, folder, 'top', '--sort', 'end', 'now.pickle')[1]
    count('holders: stacks of tarn top', set(rows) == set(top_rows(top)) and len(rows) > 2,
          f'{rows} {top}')
    others = sum(number for name, number in rows.items() if name != 'total')
    count('holders: adds up', abs(rows.get('total', 0) - others) < 32 << 20, rows)
    holders_refused(tarn, server, folder)
    server.end()
    os.unlink(os.path.join(folder, 'now.pickle'))
    run(tarn, folder, '--once')  # removes what the server left
    count('holders: nothing is left', not leftovers(folder), os.listdir(folder))


def leftovers(folder):
    return [name for name in os.listdir(folder) if name.startswith('tarn-holders')]


def holders_refused(tarn, server, folder):
    pid = str(server.pid)
    refused('holders: no JSON', tarn, folder, 2, '--json has no holders', '--json', '--holders')
    server.send(signal.SIGSTOP)
    code, out, _ = run(tarn, folder, '--once', '--holders', pid)
    count('holders: no answer', code == 6 and f'! process {pid} does not answer: it hangs' in out,
          f'{code} {out}')
    count('holders: no answer, nothing left', not leftovers(folder), os.listdir(folder))
    server.write(CONTROLLED, b'\0\0\0\0')
    code, out, _ = run(tarn, folder, '--once', '--holders', pid)
    count('holders: no requests', code == 6 and 'start it with TARN_WATCH=control' in out,
          f'{code} {out}')
    server.send(signal.SIGCONT)
    time.sleep(0.2)  # the request that nobody waits for is served now
    count('holders: late, nothing left', not leftovers(folder), os.listdir(folder))


def press_until(terminal, text):
    """Asks for holders until they have it."""
    end = time.monotonic() + tree_screen.PATIENCE_S
    while not terminal.has(text) and time.monotonic() < end:
        terminal.press(b'h')
        pause = time.monotonic() + 0.5
        while time.monotonic() < pause:  # the screen never rests
            terminal.read(0.1)


def holders_screen(tarn, watched, folder):
    server = Watched(watched, folder)
    other = Watched(watched, folder)
    low, high = sorted([server, other], key=lambda one: one.pid)
    terminal = Terminal([tarn, 'watch', '--interval', '0.1', '--sort', 'pid'],
                        lines=40, XDG_RUNTIME_DIR=folder)
    terminal.wait('holders: offered', lambda t: t.has('h holders', 'device 0: 16.00 GiB'))
    terminal.press(b'h')
    terminal.wait('holders: off on the screen', lambda t: t.has(
        f'who holds most in process {low.pid}: asked at', '! history is off', 'h look again'))
    count('holders: in place of the details', 'device 0: 16.00' not in terminal.text(),
          terminal.text())
    ask(tarn, folder, 'control', str(low.pid), 'history', 'on')
    press_until(terminal, SERVER_STACK)  # the history may have no events at first
    count('holders: again', terminal.has('as of', '(no frames)', 'total'), terminal.text())
    first = re.findall('as of .*', terminal.text())
    time.sleep(1.2)
    terminal.press(b'h')
    terminal.wait('holders: later', lambda t: t.has('as of', SERVER_STACK) and
                  re.findall('as of .*', t.text()) != first)
    terminal.press(DOWN)
    terminal.wait('holders: not of another', lambda t: not t.has('who holds most') and
                  t.has('device 0: 16.00 GiB', 'h holders'))
    terminal.press(tree_screen.UP)
    terminal.wait('holders: still there', lambda t: t.has(f'most in process {low.pid}'))
    terminal.press(b'c')
    terminal.wait('holders: closed', lambda t: t.has('device 0: 16.00 GiB', 'h holders'))
    high.send(signal.SIGSTOP)
    terminal.press(DOWN)
    terminal.wait('holders: silent', lambda t: t.has('! the process does not answer'))
    terminal.press(b'h')
    terminal.wait('holders: no answer on the screen', lambda t: t.has(
        f'! process {high.pid} does not answer'))
    terminal.press(b'\x1b')
    terminal.wait('holders: escape closes', lambda t: not t.has('who holds most'))
    terminal.press(b'q')
    terminal.end('holders: leaves', 0)
    for one in (server, other):
        one.end()
    count('holders: the screen leaves nothing', not leftovers(folder), os.listdir(folder))


# ---- the screen ----


def screen(tarn, watched, folder):
    first = Watched(watched, folder)
    second = Watched(watched, folder, TARN_ALLOC_CONF='policy:compact')
    low, high = sorted([first.pid, second.pid])
    terminal = Terminal([tarn, 'watch', '--interval', '0.1', '--sort', 'pid'],
                        lines=40, XDG_RUNTIME_DIR=folder)
    terminal.wait('both processes', lambda t: t.has('2 processes', str(low), str(high)))
    terminal.wait('details', lambda t: t.has('device 0: 16.00 GiB', 'default large', 'reserved'))
    count('the first is selected', str(low) in selected(terminal), terminal.text())
    terminal.press(DOWN)
    terminal.wait('the second is selected', lambda t: str(high) in selected(t))
    terminal.press(b's')
    terminal.wait('sorted', lambda t: t.has('sorted by reserved'))
    terminal.press(b'f')
    terminal.wait('frozen', lambda t: t.has('FROZEN'))
    before = terminal.text()
    time.sleep(0.5)
    while terminal.read(0.05):
        pass
    count('nothing moves', terminal.text() == before, terminal.text())
    terminal.press(b'f')
    terminal.wait('on again', lambda t: not t.has('FROZEN'))
    terminal.press(b'/none')
    terminal.wait('filtered', lambda t: t.has('program: none_') and not t.has('default large'))
    terminal.press(b'\x7f' * 4 + b'watch\r')
    terminal.wait('filtered less', lambda t: t.has(str(low), str(high), '? help'))
    terminal.press(b'?')
    terminal.wait('help', lambda t: t.has('select a process'))
    terminal.press(b'x')
    terminal.wait('no help', lambda t: t.has('CACHED', 'default large'))
    second.send(signal.SIGSTOP)
    first.end()
    terminal.wait('one is gone', lambda t: t.has('1 process ') and str(first.pid) not in t.text())
    terminal.wait('one is silent', lambda t: t.has('does not answer'))
    second.send(signal.SIGCONT)
    terminal.wait('it answers', lambda t: not t.has('does not answer'))
    terminal.press(b'q')
    terminal.end('leaves', 0)
    ended(tarn, second, folder)


def ended(tarn, server, folder):
    """A process that is watched by its number stays on the screen when it has ended."""
    terminal = Terminal([tarn, 'watch', '--interval', '0.1', str(server.pid)],
                        XDG_RUNTIME_DIR=folder)
    terminal.wait('one process', lambda t: t.has('1 process', 'pages of 2.00 MiB'))
    server.end()
    terminal.wait('has ended', lambda t: t.has('the process has ended'))
    terminal.set_size(60, 12)
    os.kill(terminal.program.pid, signal.SIGWINCH)
    terminal.wait('smaller', lambda t: t.has('1 process', 'h holders'))
    os.kill(terminal.program.pid, signal.SIGTERM)
    terminal.end('a signal', -signal.SIGTERM)


def selected(terminal):
    """The row in reverse, below the title."""
    for number in range(1, terminal.screen.lines):
        if all(terminal.screen.buffer[number][x].reverse for x in range(8)):
            return terminal.screen.display[number].rstrip()
    return ''


def main():
    tarn, watched = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        text_once(tarn, watched, folder)
        several(tarn, watched, folder)
        trouble(tarn, watched, folder)
        hostile(tarn, watched, folder)
        requests(tarn, watched, folder)
        holders_once(tarn, watched, folder)
        holders_screen(os.path.abspath(tarn), watched, folder)
        screen(tarn, watched, folder)
    print(f'{tree_screen.passed} passed, {tree_screen.failed} failed, 0 skipped')
    return 1 if tree_screen.failed else 0


if __name__ == '__main__':
    sys.exit(main())
