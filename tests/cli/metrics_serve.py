# SPDX-License-Identifier: MIT
"""metrics_serve.py TARN WATCHED: `tarn metrics --listen`, on a port and on a Unix socket."""

import http.client
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

import metrics
import openmetrics
from metrics import PATIENCE_S, count, environment, number, same
from watched import Watched

OPEN = 'application/openmetrics-text'


class Connection(http.client.HTTPConnection):
    """To a port, or to the path of a Unix socket."""

    def __init__(self, place):
        super().__init__('localhost', timeout=PATIENCE_S)
        self.place = place

    def connect(self):
        is_path = isinstance(self.place, str)
        self.sock = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.place if is_path else ('127.0.0.1', self.place))

    def ask(self, path='/metrics', method='GET', **headers):
        """(code, type, text)"""
        self.request(method, path, headers=headers)
        response = self.getresponse()
        return response.status, response.headers['Content-Type'], response.read().decode()


def ask(place, *arguments, **headers):
    connection = Connection(place)
    answer = connection.ask(*arguments, **headers)
    connection.close()
    return answer


class Server:
    """The program, until it is told to end."""

    def __init__(self, tarn, folder, listen, *arguments):
        self.process = subprocess.Popen(
            [tarn, 'metrics', '--listen', listen, *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(folder),
        )
        self.said = self.process.stderr.readline()
        port = re.search(r'http://127\.0\.0\.1:(\d+)/metrics', self.said)
        self.place = int(port.group(1)) if port else listen.removeprefix('unix:')

    def end(self, number):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err


def refused(name, tarn, folder, code, text, *arguments):
    """One sentence, before anything is served."""
    found, out, err = metrics.run(tarn, folder, 'metrics', *arguments)
    is_good = found == code and out == '' and text in err and err.count('\n') == 1
    count(name, is_good, f'{found} {out!r} {err!r}')


def formats(place):
    code, kind, text = ask(place)
    same('anything', (code, kind), (200, f'{OPEN}; version=1.0.0; charset=utf-8'))
    openmetrics.read(text)
    prometheus = f'{OPEN};version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
    same('OpenMetrics', ask(place, Accept=prometheus)[1].split(';')[0], OPEN)
    code, kind, text = ask(place, Accept='text/plain;version=0.0.4;q=1,*/*;q=0.1')
    same('the older format', (code, kind), (200, 'text/plain; version=0.0.4; charset=utf-8'))
    count('the older format: text', '# EOF' not in text and 'tarn_processes ' in text, text)


def other_requests(place):
    same('another path', ask(place, '/')[::2], (404, 'the metrics are at /metrics\n'))
    same('another method', ask(place, '/metrics', 'POST')[0], 405)
    code, kind, text = ask(place, '/metrics', 'HEAD')
    same('HEAD', (code, kind.split(';')[0], text), (200, OPEN, ''))
    for host in ('localhost:80', 'LOCALHOST', '127.0.0.1', '[::1]:9400'):
        same(f'as {host}', ask(place, Host=host)[0], 200)
    for host in ('example.org', 'localhost.example.org', '127.0.0.1.example.org:80', ''):
        same(f'as {host}', ask(place, Host=host)[::2], (403, 'the host must be localhost\n'))
    connection = Connection(place)
    same('twice on a connection', [connection.ask()[0], connection.ask()[0]], [200, 200])
    connection.close()


def at_once(place):
    """Two ask at once, while a third has said half of a word and a fourth goes away."""
    slow = socket.create_connection(('127.0.0.1', place))
    slow.sendall(b'GET /metr')
    gone = socket.create_connection(('127.0.0.1', place))
    gone.sendall(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n' * 20)
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')  # a reset
    gone.close()
    answers = []
    clients = [threading.Thread(target=lambda: answers.extend(ask(place) for _ in range(10)))
               for _ in range(2)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    same('two at once', [answer[0] for answer in answers], [200] * 20)
    for _, _, text in answers:
        openmetrics.read(text)
    slow.sendall(b'ics HTTP/1.1\r\nHost: localhost\r\n\r\n')
    count('the slow one', slow.recv(15) == b'HTTP/1.1 200 OK')
    slow.close()


def come_and_go(place, watched, folder):
    same('nobody yet', shown(place), set())
    server = Watched(watched, folder)
    same('one comes', shown(place), {str(server.pid)})
    before = number(openmetrics.read(ask(place)[2]), 'tarn_allocations')
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        now = number(openmetrics.read(ask(place)[2]), 'tarn_allocations')
        if now > before:
            break
    count('counters go on', now > before, f'{before} {now}')
    other = Watched(watched, folder)
    same('another comes', shown(place), {str(server.pid), str(other.pid)})
    server.end()
    same('one goes', shown(place), {str(other.pid)})
    other.end()
    same('nobody is left', shown(place), set())


def shown(place):
    families = openmetrics.read(ask(place)[2])
    pids = {labels['pid'] for _, labels, _ in openmetrics.samples(families) if 'pid' in labels}
    same('processes', number(families, 'tarn_processes'), len(pids))
    return pids


def port(tarn, watched, folder):
    server = Server(tarn, folder, '0')
    count('the address is said', isinstance(server.place, int), server.said)
    come_and_go(server.place, watched, folder)
    formats(server.place)
    other_requests(server.place)
    at_once(server.place)
    refused('a port in use', tarn, folder, 6, 'in use', '--listen', str(server.place))
    folder_of_pages = os.path.join(folder, 'tarn')
    os.chmod(folder_of_pages, 0o755)
    code, _, text = ask(server.place)
    count('a folder open to others', code == 500 and 'open to others' in text, text)
    os.chmod(folder_of_pages, 0o700)
    same('and closed again', ask(server.place)[0], 200)
    same('SIGTERM', server.end(signal.SIGTERM), (0, '', ''))
    again = Server(tarn, folder, f'127.0.0.1:{server.place}', '--format', 'prometheus')
    same('the port is free again', again.place, server.place)
    same('the format of the option', ask(again.place)[1].split(';')[0], 'text/plain')
    same('SIGINT', again.end(signal.SIGINT), (130, '', ''))


def addresses(tarn, folder):
    for place in ('0.0.0.0:9400', '[::]:9400', '192.0.2.1:9400', 'example.org:9400', ':9400'):
        refused(place, tarn, folder, 2, 'only the loopback is served', '--listen', place)
    for place in ('', '65536', '99999999999', '-1', '80x', '127.0.0.1', '127.0.0.1:', '[::1]:x'):
        refused(repr(place), tarn, folder, 2, 'neither a port', f'--listen={place}')
    for place in ('unix:', 'unix:/' + 'x' * 108):
        refused(place, tarn, folder, 2, '1 to 107 bytes', '--listen', place)
    refused('no folder', tarn, folder, 6, 'No such file', '--listen', f'unix:{folder}/none/socket')
    refused('no process', tarn, folder, 6, 'publishes nothing', '1', '--listen', '0')
    refused('a file as well', tarn, folder, 2, 'exclude', '--listen', '0', '-o', f'{folder}/out')
    count('no file', not os.path.exists(f'{folder}/out'))


def unix(tarn, folder):
    path = os.path.join(folder, 'metrics.sock')
    server = Server(tarn, folder, f'unix:{path}')
    same('a socket of this user', stat.S_IMODE(os.lstat(path).st_mode), 0o600)
    same('on a socket', ask(path)[0], 200)
    same('on a socket, as any host', ask(path, Host='example.org')[0], 200)
    refused('a socket in use', tarn, folder, 6, 'in use', '--listen', f'unix:{path}')
    same('on a socket, still', ask(path)[0], 200)
    server.process.kill()
    server.process.communicate()
    count('a socket is left over', os.path.exists(path))
    server = Server(tarn, folder, f'unix:{path}')
    same('it is replaced', ask(path)[0], 200)
    same('SIGTERM', server.end(signal.SIGTERM), (0, '', ''))
    count('the socket is gone', not os.path.lexists(path))
    with open(path, 'w', encoding='utf-8') as file:
        file.write('mine')
    refused('a file', tarn, folder, 6, 'exists', '--listen', f'unix:{path}')
    with open(path, encoding='utf-8') as file:
        same('the file is as it was', file.read(), 'mine')
    os.unlink(path)
    server = Server(tarn, folder, f'unix:{path}')
    os.unlink(path)
    with open(path, 'w', encoding='utf-8') as file:
        file.write('mine')
    server.end(signal.SIGTERM)
    count('what took its place stays', os.path.exists(path))


def main():
    tarn, watched = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if 'not built' in metrics.run(tarn, folder, 'metrics', '--listen', '')[2]:
            metrics.skip('this tarn was not built with libmicrohttpd')
        else:
            port(tarn, watched, folder)
            addresses(tarn, folder)
            unix(tarn, folder)
    print(f'{metrics.passed} passed, {metrics.failed} failed, {metrics.skipped} skipped')
    return 1 if metrics.failed else 0


if __name__ == '__main__':
    sys.exit(main())
