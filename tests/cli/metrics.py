# SPDX-License-Identifier: MIT
"""metrics.py TARN WATCHED DASHBOARD: `tarn metrics` of processes that run."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import openmetrics
from watched import SLOT, Watched

PATIENCE_S = 30  # a failure only: a test waits for what it expects
PER_ALLOCATOR = 40 + 4 * 6  # of its own, and of kinds of pools, as docs/metrics.md says
passed = failed = skipped = 0


def count(name, is_good, why=''):
    global passed, failed
    passed += bool(is_good)
    failed += not is_good
    if not is_good:
        print(f'FAIL {name}\n{why}')


def skip(reason):
    global skipped
    skipped += 1
    print(f'skip: {reason}')


def environment(folder):
    return {'PATH': os.environ['PATH'], 'XDG_RUNTIME_DIR': folder, 'LC_ALL': 'C.UTF-8'}


def run(tarn, folder, *arguments):
    result = subprocess.run(
        [tarn, *arguments], capture_output=True, text=True, check=False, env=environment(folder),
    )
    return result.returncode, result.stdout, result.stderr


def read(tarn, folder, *arguments):
    """The metrics that the program prints, by family."""
    code, out, err = run(tarn, folder, 'metrics', *arguments)
    try:
        families = openmetrics.read(out)
    except openmetrics.Bad as bad:
        count(f'metrics {arguments}: the format', False, bad)
        return {}
    count(f'metrics {arguments}', code == 0 and err == '', f'{code} {err}')
    return families


def number(families, family, **labels):
    """Of the only sample with these labels; None if there is none."""
    found = [value for _, has, value in families.get(family, {'samples': []})['samples']
             if labels.items() <= has.items()]
    return found[0] if len(found) == 1 else None


def same(name, found, wanted):
    count(name, found == wanted, f'{found} instead of {wanted}')


# ---- figures ----


def seconds(ns):
    """The double that is nearest to it."""
    return float(f'{ns // 10 ** 9}.{ns % 10 ** 9:09}')


def expected(record):
    """What the metrics of an allocator are, by the JSON of `tarn watch`."""
    now = {key: value['all'] for key, value in record['counters'].items()
           if isinstance(value, dict)}
    used, reserved = now['allocated_bytes'], now['reserved_bytes']
    counters, pages, oom = record['counters'], record['pages'] or {}, record['last_oom'] or {}
    return {
        'hw_gpu_memory_limit_bytes': record['device_total'],
        'hw_gpu_memory_usage_bytes': record['device_total'] - record['device_free'],
        'hw_gpu_memory_utilization_ratio':
            round(1 - record['device_free'] / record['device_total'], 6),
        'tarn_device_asked_timestamp_seconds': seconds(record['device_time_ns']),
        'tarn_updated_timestamp_seconds': seconds(record['time_ns']),
        'tarn_updates_missed': record['missed'],
        'tarn_limit_bytes': record['limit'],
        'tarn_memory_allocated_bytes': used['current'],
        'tarn_memory_allocated_peak_bytes': used['peak'],
        'tarn_memory_reserved_bytes': reserved['current'],
        'tarn_memory_reserved_peak_bytes': reserved['peak'],
        'tarn_memory_active_bytes': now['active_bytes']['current'],
        'tarn_memory_requested_bytes': now['requested_bytes']['current'],
        'tarn_memory_cached_bytes': reserved['current'] - used['current'],
        'tarn_memory_inactive_split_bytes': now['inactive_split_bytes']['current'],
        'tarn_largest_free_block_bytes': max(row['largest_free'] for row in record['streams']),
        'tarn_blocks': now['allocation']['current'],
        'tarn_segments': now['segment']['current'],
        'tarn_allocations': now['allocation']['allocated'],
        'tarn_frees': now['allocation']['freed'],
        'tarn_allocated_bytes': used['allocated'],
        'tarn_freed_bytes': used['freed'],
        'tarn_device_allocations': counters['num_device_alloc'],
        'tarn_device_frees': counters['num_device_free'],
        'tarn_retries': counters['num_alloc_retries'],
        'tarn_stream_waits': counters['num_sync_all_streams'],
        'tarn_out_of_memory': counters['num_ooms'] + counters['num_oom_rejections'],
        'tarn_last_out_of_memory_timestamp_seconds':
            seconds(oom['time_ns']) if oom else None,
        'tarn_last_out_of_memory_requested_bytes': oom.get('requested'),
        'tarn_page_size_bytes': pages.get('page_size'),
        'tarn_page_creations': pages.get('created'),
        'tarn_page_moves': pages.get('moved'),
        'tarn_pages_kept': pages.get('kept'),
        'tarn_pages_retired': pages.get('retired'),
        'tarn_page_requests': pages.get('requests'),
        'tarn_page_request_seconds': seconds(pages['request_ns']) if pages else None,
        'tarn_page_request_longest_seconds': seconds(pages['longest_ns']) if pages else None,
        'tarn_streams_updated_timestamp_seconds': seconds(record['streams_time_ns']),
        'tarn_segments_left_out': record['segments_left_out'],
    }


ROWS = {'segments': 'segments', 'reserved_bytes': 'reserved', 'allocated_bytes': 'allocated',
        'active_bytes': 'active', 'requested_bytes': 'requested',
        'largest_free_block_bytes': 'largest_free'}


def compare_rows(families, labels, rows):
    for name, key in ROWS.items():
        for size in ('small', 'large'):
            of_size = [row[key] for row in rows if row['is_large'] == (size == 'large')]
            join = max if key == 'largest_free' else sum
            same(f'tarn_pool_{name} {size}',
                 number(families, f'tarn_pool_{name}', pool='default', size=size, **labels),
                 join(of_size) if of_size else None)
        for row in rows:
            stream = hex(row['stream']) if row['stream'] else '0'
            same(f'tarn_stream_{name} {row}', number(
                families, f'tarn_stream_{name}', stream=stream, pool='default',
                size='large' if row['is_large'] else 'small', **labels), row[key])


def figures(tarn, folder, server):
    """A stopped process is read twice as it is."""
    server.send(signal.SIGSTOP)
    document = json.loads(run(tarn, folder, 'watch', '--json', str(server.pid))[1])
    record = document['data']['processes'][0]['allocators'][0]
    families = read(tarn, folder, '--streams', str(server.pid))
    labels = {'pid': str(server.pid), 'program': 'watched', 'device': '0', 'allocator': '0'}
    wanted = expected(record)
    for name, value in wanted.items():
        same(name, number(families, name, **labels), value)
    compare_rows(families, labels, record['streams'])
    same('answers', number(families, 'tarn_process_answers', pid=str(server.pid)), 0)
    same('info', number(families, 'tarn_allocator', backend=record['backend'],
                        policy=record['policy'], **labels), 1)
    same('hw_id', number(families, 'hw_gpu_memory_usage_bytes', hw_id='0', **labels),
         wanted['hw_gpu_memory_usage_bytes'])
    known = {*wanted, 'tarn_allocator', 'tarn_process', 'tarn_process_answers', 'tarn_processes',
             'tarn_processes_unreadable', 'tarn_processes_left_out'}
    unknown = {name for name in families if name not in known
               and not name.startswith(('tarn_pool_', 'tarn_stream_'))}
    count('nothing that is not compared', not unknown, unknown)
    server.send(signal.SIGCONT)


def wait_for(tarn, folder, server, *names):
    """Until the process has metrics of these names that are not 0."""
    end = time.monotonic() + PATIENCE_S
    missing = names
    while missing and time.monotonic() < end:
        time.sleep(0.05)
        families = openmetrics.read(run(tarn, folder, 'metrics', str(server.pid))[1])
        missing = [name for name in names if not number(families, name)]
    count('there is something to see', not missing, missing)


def processes(tarn, folder, servers):
    families = read(tarn, folder)
    pids = {labels['pid'] for _, labels, _ in families['tarn_memory_reserved_bytes']['samples']}
    same('both processes', pids, {str(server.pid) for server in servers})
    same('processes', number(families, 'tarn_processes'), 2)
    for server in servers:
        mine = [name for name, labels, _ in openmetrics.samples(families)
                if labels.get('pid') == str(server.pid) and 'allocator' in labels]
        count('bounded', 20 < len(mine) <= PER_ALLOCATOR, f'{len(mine)} series')
        same('answers', number(families, 'tarn_process_answers', pid=str(server.pid)), 1)
    same('by name', number(read(tarn, folder, 'watched'), 'tarn_processes'), 2)
    same('by number', number(read(tarn, folder, str(servers[0].pid)), 'tarn_processes'), 1)
    same('by another name', number(openmetrics.read(
        run(tarn, folder, 'metrics', '--quiet', 'other')[1]), 'tarn_processes'), 0)


def promtool(tarn, folder):
    """Prometheus' own readers of both formats."""
    if not shutil.which('promtool'):
        skip('no promtool here (Debian: prometheus)')
        return
    text = run(tarn, folder, 'metrics', '--streams', '--format', 'prometheus')[1]
    check = subprocess.run(['promtool', 'check', 'metrics'], input=text, text=True,
                           capture_output=True, check=False)
    count('promtool check metrics', check.returncode == 0 and not check.stderr, check)
    lines = run(tarn, folder, 'metrics', '--streams')[1].split('\n')
    path = os.path.join(folder, 'metrics.txt')
    with open(path, 'w', encoding='utf-8') as file:  # which wants times
        file.write('\n'.join(line if not line or line[0] == '#' else f'{line} 1'
                             for line in lines))
    check = subprocess.run(
        ['promtool', 'tsdb', 'create-blocks-from', 'openmetrics', path,
         os.path.join(folder, 'blocks')], text=True, capture_output=True, check=False)
    wanted = sum(1 for line in lines if line and line[0] != '#')
    count('promtool reads OpenMetrics', check.returncode == 0 and f' {wanted} ' in check.stdout,
          f'{wanted} samples, {check}')


def queries(dashboard):
    """[(what asks, query)]"""
    found = [(variable['name'], variable['query'])
             for variable in dashboard['templating']['list'] if variable['type'] == 'query']
    for panel in dashboard['panels']:
        found += [(panel['title'], target['expr']) for target in panel['targets']]
    return found


def dashboard_shows(tarn, folder, path):
    """Every metric that it asks for is there, and only counters have rates."""
    with open(path, encoding='utf-8') as file:
        asked = queries(json.load(file))
    families = read(tarn, folder)
    names = {name for name, _, _ in openmetrics.samples(families)}
    labels = {label for _, has, _ in openmetrics.samples(families) for label in has}
    for title, query in asked:
        used = set(re.findall(r'\b(?:tarn|hw)_\w+', query)) - labels
        count(f'dashboard: {title}', used and used <= names, f'{used - names} in {query}')
        counted = set(re.findall(r'(?:rate|increase)\((\w+)', query))
        same(f'dashboard: rates in {title}', {name for name in used if name.endswith('_total')},
             counted)
    if not shutil.which('promtool'):
        skip('no promtool here (Debian: prometheus)')
        return
    rules = [{'record': 'a:b', 'labels': {'query': str(number)},
              'expr': re.sub(r'\$__\w+', '5m', query)}
             for number, (_, query) in enumerate(asked) if 'label_values' not in query]
    path = os.path.join(folder, 'rules.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({'groups': [{'name': 'dashboard', 'rules': rules}]}, file)
    check = subprocess.run(['promtool', 'check', 'rules', path], text=True, capture_output=True,
                           check=False)
    count('promtool reads the queries', check.returncode == 0 and len(rules) > 10, check)


def hostile(tarn, folder, server):
    server.send(signal.SIGSTOP)
    server.write(48, b'a"b\\c\n\x1b[2J\xff# EOF\0')  # the program's name
    families = read(tarn, folder)
    same('a hostile name', number(families, 'tarn_process_answers',
                                  program='a"b\\c\\x0a\\x1b[2J\\xff# EOF'), 0)
    with open(server.page, 'rb') as file:
        file.seek(SLOT)
        current = int.from_bytes(file.read(8), 'little')
    server.write(SLOT + 16 + current % 2 * (6312 + 8) + 16, b'\xff' * 6000)
    families = read(tarn, folder, '--streams')
    same('hostile numbers', number(families, 'tarn_processes'), 2)
    server.write(SLOT, (1 << 40).to_bytes(8, 'little'))  # a record that is never whole
    unreadable(tarn, folder, server, 'a record that changes')
    server.write(8, b'\x07')
    unreadable(tarn, folder, server, 'another version')
    code, out, err = run(tarn, folder, 'metrics', str(server.pid))
    count('another version: by number', code == 3 and out == '' and err.count('\n') == 1, err)
    server.end()
    os.unlink(server.page)


def unreadable(tarn, folder, server, name):
    families = read(tarn, folder)
    same(f'{name}: counted', number(families, 'tarn_processes_unreadable'), 1)
    same(f'{name}: the other one', number(families, 'tarn_processes'), 1)
    rest = [labels for _, labels, _ in openmetrics.samples(families)
            if labels.get('pid') == str(server.pid)]
    same(f'{name}: left out', rest, [])


def gone(tarn, folder, server):
    server.end()
    code, out, err = run(tarn, folder, 'metrics')
    families = openmetrics.read(out)
    same('nobody', number(families, 'tarn_processes'), 0)
    count('nobody: a hint', code == 0 and err.count('\n') == 1 and 'TARN_WATCH=1' in err, err)
    code, out, err = run(tarn, folder, 'metrics', str(server.pid))
    count('nobody by that number', code == 6 and out == '' and err.count('\n') == 1, err)
    os.chmod(os.path.join(folder, 'tarn'), 0o755)
    code, out, err = run(tarn, folder, 'metrics')
    count('open to others', code == 4 and out == '' and err.count('\n') == 1, err)
    os.chmod(os.path.join(folder, 'tarn'), 0o700)


def main():
    tarn, watched, dashboard = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        servers = [Watched(watched, folder, 'sim:6200MiB'),  # not every request fits
                   Watched(watched, folder, TARN_ALLOC_CONF='policy:compact')]
        wait_for(tarn, folder, servers[0], 'tarn_out_of_memory', 'tarn_largest_free_block_bytes')
        wait_for(tarn, folder, servers[1], 'tarn_page_moves', 'tarn_largest_free_block_bytes')
        for server in servers:
            figures(tarn, folder, server)
        processes(tarn, folder, servers)
        promtool(tarn, folder)
        dashboard_shows(tarn, folder, dashboard)
        hostile(tarn, folder, servers[1])
        gone(tarn, folder, servers[0])
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
