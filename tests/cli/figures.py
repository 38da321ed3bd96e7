# SPDX-License-Identifier: MIT
"""figures.py TARN SNAPSHOT...: what the commands say about one file agrees.

Each recording is taken as it is and replayed under other settings (`tarn replay`). Of each file
the figures of frag, oom, peak, live, trim and summary are compared with each other, and with
figures made straight from the pickle, by nothing but Python's pickle module and the rules of the
allocator: the trace is run forwards over a map of blocks. Where a recording begins mid-run that
map is not known before the end; there the segments of the file are compared, and commands with
each other.
The second half of a whole recording must give the figures of the whole.
"""
import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import tempfile

MIB = 1 << 20
SETTINGS = [
    None,  # the recording itself
    'roundup_power2_divisions:4',
    'roundup_power2_divisions:[256:1,512:2,1024:4,>:8],max_split_size_mb:32',
    'expandable_segments:True',
    'expandable_segments:True,roundup_power2_divisions:8',
    'max_split_size_mb:24',
    'garbage_collection_threshold:0.6,max_split_size_mb:64',
]


class Plain(pickle.Unpickler):
    """Snapshots hold plain data."""

    def find_class(self, module, name):
        raise ValueError(f'{module}.{name} in a snapshot')


def load(path):
    with open(path, 'rb') as file:
        data = file.read()
    if data[:2] == b'\x1f\x8b':
        data = gzip.decompress(data)
    return Plain(io.BytesIO(data)).load()


# ---- the rules ----


class Rules:
    def __init__(self, snapshot):
        settings = snapshot.get('allocator_settings') or {}
        divisions = settings.get('roundup_power2_divisions') or {}
        self.divisions = [int(divisions.get(str(1 << i), 0)) for i in range(16)]
        split = settings.get('max_split_size', -1)
        self.max_split = split if split > 0 else float('inf')
        self.expandable = bool(settings.get('expandable_segments', False))

    @staticmethod
    def unit(size):
        return max(512, (size + 511) // 512 * 512)

    def rounded(self, size):
        interval = min(max((size >> 20).bit_length() - 1, 0), 15)
        divisions = self.divisions[interval]
        if divisions <= 1 or size <= 512 * divisions:
            return self.unit(size)
        power = 1 << (size.bit_length() - 1)
        step = power // divisions
        return (size + step - 1) // step * step if step else power * 2

    def block(self, room, size):
        """Bytes of the block that serves a request from a free block of `room` bytes."""
        rounded = self.rounded(size)
        if rounded <= MIB or self.expandable:
            return rounded if room - rounded >= 512 else room
        return rounded if room - rounded > MIB and rounded < self.max_split else room


# ---- the state of one device, run forwards ----


class Map:
    """Blocks by address: [end, state, requested, segment]. A segment is a number; the pages of an
    expandable one that touch are one."""

    def __init__(self, rules):
        self.rules = rules
        self.blocks = {}
        self.ends = {}
        self.segments = {}

    def add(self, start, end, state, requested, segment):
        self.blocks[start] = [end, state, requested, segment]
        self.ends[end] = start

    def take(self, start):
        block = self.blocks.pop(start)
        del self.ends[block[0]]
        return block

    def free(self, start, end, segment):
        """A free block, merged with free neighbours of its segment."""
        behind = self.blocks.get(end)
        if behind and behind[1] == 'inactive' and behind[3] == segment:
            end = self.take(end)[0]
        before = self.ends.get(start)
        if before is not None:
            block = self.blocks[before]
            if block[1] == 'inactive' and block[3] == segment:
                start = before
                self.take(before)
        self.add(start, end, 'inactive', 0, segment)

    def unmap(self, start, size):
        at = start
        if at not in self.blocks:
            at = max(a for a in self.blocks if a <= start)
        end, state, _, segment = self.take(at)
        assert state == 'inactive' and end >= start + size
        if at < start:
            self.add(at, start, 'inactive', 0, segment)
        if end > start + size:
            self.add(start + size, end, 'inactive', 0, segment)

    def step(self, entry):
        action, address, size = entry['action'], entry.get('addr'), entry.get('size')
        if action == 'segment_alloc':
            self.add(address, address + size, 'inactive', 0, address)
        elif action == 'segment_free':
            assert self.take(address)[0] == address + size
        elif action == 'segment_map':
            self.free(address, address + size, ('pages', entry['stream']))
        elif action == 'segment_unmap':
            self.unmap(address, size)
        elif action == 'alloc':
            end, state, _, segment = self.take(address)
            assert state == 'inactive'
            used = address + self.rules.block(end - address, size)
            self.add(address, used, 'active_allocated', size, segment)
            if used < end:
                self.add(used, end, 'inactive', 0, segment)
        elif action == 'free_requested':
            self.blocks[address][1] = 'active_pending_free'
        elif action == 'free_completed':
            end, _, _, segment = self.take(address)
            self.free(address, end, segment)

    def listed(self):
        return sorted((start, block[0] - start, block[1], block[2] if block[1] != 'inactive' else 0)
                      for start, block in self.blocks.items())


def blocks_of(segments, device):
    """The same list from the segments of a file."""
    blocks = []
    for segment in segments:
        if segment['device'] != device:
            continue
        at = segment['address']
        for block in segment['blocks']:
            state = block['state']
            blocks.append((at, block['size'], state,
                           block['requested_size'] if state != 'inactive' else 0))
            at += block['size']
    return sorted(blocks)


def figures(rules, blocks):
    """The figures of `tarn frag` for a list of blocks."""
    used = [block for block in blocks if block[2] != 'inactive']
    free = [block[1] for block in blocks if block[2] == 'inactive']
    rounded = sum(min(rules.rounded(block[3]), block[1]) for block in used)
    by_unit = sum(min(rules.unit(block[3]), block[1]) for block in used)
    requested = sum(block[3] for block in used)
    return {
        'reserved_bytes': sum(block[1] for block in blocks),
        'requested_bytes': requested,
        'rounding_bytes': by_unit - requested,
        'rounded_by_settings_bytes': rounded - by_unit,
        'slack_bytes': sum(block[1] for block in used) - rounded,
        'free_bytes': sum(free),
        'largest_free_bytes': max(free, default=0),
        'free_pieces': len(free),
    }


def divided(segments, device):
    """What of the free memory of a file's segments can be returned at once, is stuck beside blocks
    of the main stream, and is held elsewhere."""
    reserved = {}
    for segment in segments:
        if segment['device'] == device and tuple(segment['segment_pool_id']) == (0, 0):
            stream = segment['stream']
            reserved[stream] = reserved.get(stream, 0) + segment['total_size']
    main_stream = min(reserved, key=lambda stream: (-reserved[stream], stream), default=0)
    parts = {'releasable_bytes': 0, 'stuck_bytes': 0, 'held_elsewhere_bytes': 0}
    for segment in segments:
        if segment['device'] != device:
            continue
        at = segment['address']
        page = 20 * MIB if segment['segment_type'] == 'large' else 2 * MIB
        for block in segment['blocks']:
            start, end = at, at + block['size']
            at = end
            if block['state'] != 'inactive':
                continue
            whole = 0
            if block['size'] == segment['total_size']:
                whole = block['size']
            elif segment['is_expandable']:
                first = -(-(start - segment['address']) // page) * page
                whole = max(0, (end - segment['address']) // page * page - first)
            if tuple(segment['segment_pool_id']) != (0, 0):
                parts['held_elsewhere_bytes'] += block['size']
                continue
            parts['releasable_bytes'] += whole
            rest = 'stuck_bytes' if segment['stream'] == main_stream else 'held_elsewhere_bytes'
            parts[rest] += block['size'] - whole
    return parts


# ---- the commands ----


class Tarn:
    def __init__(self, program):
        self.program = program
        text = self.run('replay', '--help')
        self.save = '--save' if '--save' in text else '--output'

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300).stdout

    def is_good(self, path):
        """Whether `tarn check` finds nothing."""
        return subprocess.run([self.program, 'check', '--quiet', path], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=300, check=False).returncode == 0

    def devices(self, command, path, *arguments):
        report = json.loads(self.run(command, '--json', *arguments, path))
        return {device['device']: device for device in report['data']['devices']}


class Checks:
    def __init__(self):
        self.failures = []
        self.count = 0

    def same(self, what, left, right):
        self.count += 1
        if left != right:
            self.failures.append(f'{what}: {left} is not {right}')

    def same_members(self, what, members, wanted):
        for key, value in wanted.items():
            self.same(f'{what}: {key}', members.get(key), value)


def trimmed_segments(tarn, path, is_good, event, folder):
    target = os.path.join(folder, 'trimmed.pickle')
    tarn.run('trim', '--force', '--events', f'..{event}', path, target)
    assert not is_good or tarn.is_good(target), f'"tarn check" rejects {target}'
    snapshot = load(target)
    for segment in snapshot['segments']:
        active = [block for block in segment['blocks'] if block['state'] != 'inactive']
        wanted = (sum(b['size'] for b in segment['blocks']), sum(b['size'] for b in active),
                  sum(b['size'] for b in active if b['state'] == 'active_allocated'))
        found = (segment['total_size'], segment['active_size'], segment['allocated_size'])
        assert found == wanted, f'{found} in a trimmed segment, not {wanted}'
    return snapshot['segments']


def instant_checks(checks, what, tarn, path, is_good, rules, device, event, blocks, folder):
    """All commands about one event; `blocks` from the pickle, None: not known there."""
    frag = tarn.devices('frag', path, '--at', f'event:{event}')[device]['instant']
    live = tarn.devices('live', path, '--at', f'event:{event}')[device]['instant']
    segments = trimmed_segments(tarn, path, is_good, event, folder)
    trimmed = blocks_of(segments, device)

    if blocks is not None:
        checks.same(f'{what}: trim', trimmed, blocks)
    checks.same_members(f'{what}: frag', frag,
                        {**figures(rules, trimmed if blocks is None else blocks),
                         **divided(segments, device)})
    checks.same(f'{what}: live', live['requested_bytes'],
                frag['requested_bytes'] + frag['outside_bytes'])
    checks.same(f'{what}: live', live['reserved_bytes'], frag['reserved_bytes'])
    return frag


def oom_checks(checks, what, rules, oom, blocks):
    wanted = figures(rules, blocks)
    total = oom['all_pools']
    for key in ('reserved_bytes', 'slack_bytes', 'free_bytes', 'largest_free_bytes', 'free_pieces',
                'rounded_by_settings_bytes'):
        checks.same(f'{what}: oom: {key}', total[key], wanted[key])
        if key != 'largest_free_bytes':
            checks.same(f'{what}: oom: pools: {key}', sum(pool[key] for pool in oom['pools']),
                        total[key])
    checks.same(f'{what}: oom: used', total['used_bytes'] + total['slack_bytes'],
                sum(block[1] for block in blocks if block[2] != 'inactive'))
    checks.same(f'{what}: oom: waiting', total['waiting_bytes'],
                sum(rules.rounded(block[3]) for block in blocks
                    if block[2] == 'active_pending_free'))


def device_checks(checks, what, tarn, path, snapshot, device, folder):
    rules = Rules(snapshot)
    trace = snapshot['device_traces'][device]
    whole = starts_empty(snapshot, device)
    frag = tarn.devices('frag', path)[device]
    ooms = {oom['event']: oom for oom in tarn.devices('oom', path, '--rows', '1')[device]['ooms']}
    over_time = {state['event']: state for state in frag['over_time']}
    peak = tarn.devices('peak', path)[device]
    events = sorted({len(trace) // 2, frag['instant']['event'], peak['requested_peak']['event'],
                     len(trace) - 1} - {None})
    state = Map(rules)
    is_good = tarn.is_good(path)

    checks.same(f'{what}: peak', peak['reserved_peak']['reserved_bytes'],
                frag['instant']['reserved_bytes'])
    for number, entry in enumerate(trace):
        if whole:
            state.step(entry)
        blocks = state.listed() if whole and (
            number in over_time or number in ooms or number in events) else None
        at = f'{what}: event {number}'
        if number in over_time and whole:
            checks.same_members(f'{at}: over time', over_time[number], figures(rules, blocks))
        if number in ooms and whole:
            oom_checks(checks, at, rules, ooms[number], blocks)
        if number in events:
            found = instant_checks(checks, at, tarn, path, is_good, rules, device, number, blocks,
                                   folder)
            if number in over_time:
                checks.same_members(f'{at}: over time', over_time[number],
                                    {key: found[key] for key in over_time[number]})
    final = blocks_of(snapshot['segments'], device)
    if whole:
        checks.same(f'{what}: the end of the trace', state.listed(), final)
    checks.same_members(f'{what}: end', over_time[len(trace) - 1],
                        {**figures(rules, final), **divided(snapshot['segments'], device)})


def starts_empty(snapshot, device):
    """Whether undoing the trace leaves no segment."""
    reserved = sum(s['total_size'] for s in snapshot['segments'] if s['device'] == device)
    for entry in snapshot['device_traces'][device]:
        if entry['action'] in ('segment_alloc', 'segment_map'):
            reserved -= entry['size']
        elif entry['action'] in ('segment_free', 'segment_unmap'):
            reserved += entry['size']
    return reserved == 0


def half_checks(checks, what, tarn, path, snapshot, folder):
    """Of a trace that begins mid-run figures are those of the whole, and it is replayed to the same
    end: its first state was right."""
    half = os.path.join(folder, 'half.pickle')
    again = os.path.join(folder, 'again.pickle')
    trace = snapshot['device_traces'][0]
    middle = len(trace) // 2
    rules = Rules(snapshot)
    state = Map(rules)
    tarn.run('trim', '--force', '--events', f'{middle}..', path, half)
    over_time = {item['event'] + middle: item
                 for item in tarn.devices('frag', half)[0]['over_time']}
    for number, entry in enumerate(trace):
        state.step(entry)
        if number in over_time:
            checks.same_members(f'{what}: second half: event {number}', over_time[number],
                                figures(rules, state.listed()))
    rest = trace[middle:]
    if any(entry['action'] in ('segment_free', 'segment_unmap', 'oom') for entry in rest):
        return  # short of memory: what limited the run is not in the file
    tarn.run('replay', '--force', tarn.save, again, half)
    checks.same(f'{what}: replay of the second half', blocks_of(load(again)['segments'], 0),
                blocks_of(snapshot['segments'], 0))


def anonymized_checks(checks, what, tarn, path, folder):
    """Names that were replaced are in the categories in which they were."""
    target = os.path.join(folder, 'anonymous.pickle')
    tarn.run('trim', '--force', '--anonymize', path, target)
    for command in ('peak', 'live'):
        arguments = (command, path, '--by', 'category')
        checks.same(f'{what}: anonymized: {command}',
                    tarn.devices(command, target, '--by', 'category'), tarn.devices(*arguments))


def rows_of(report, key):
    """The first three rows of a composition, as a summary has them."""
    return [row['requested_bytes'] for row in report[key]]


def summary_checks(checks, what, tarn, path):
    """Each figure of the summary is that of the command it is from."""
    summary = json.loads(tarn.run('summary', '--json', path))['data']
    device = summary['device']
    where = ['--at', 'peak'] if summary['has_history'] else []
    live = tarn.devices('live', path, '--by', 'category', '--rows', '3', *where)[device]['instant']
    frag = tarn.devices('frag', path)[device]['instant']
    checks.same(f'{what}: allocated', summary['requested_bytes'], live['requested_bytes'])
    checks.same(f'{what}: categories', rows_of(summary, 'categories'),
                [row['bytes'] for row in live['groups']])
    checks.same(f'{what}: reserved', summary['peak_reserved_bytes'], frag['reserved_bytes'])
    for key in ('free_bytes', 'releasable_bytes', 'stuck_bytes', 'held_elsewhere_bytes'):
        checks.same(f'{what}: {key}', summary[key], frag[key])
    if not summary['has_history']:
        checks.same(f'{what}: replayed', summary['is_replayed'], False)
        return
    ooms = tarn.devices('oom', path)[device]
    leaks = tarn.devices('leaks', path, '--rows', '3')[device]
    steps = tarn.devices('steps', path)[device]
    checks.same(f'{what}: ooms', summary['ooms'], len(ooms['ooms']))
    checks.same(f'{what}: growing', [row['bytes_per_step'] for row in summary['growing']],
                [row['bytes_per_step'] for row in leaks['groups']])
    checks.same(f'{what}: outliers', summary['outlier_steps'], steps['outliers'])
    tune = json.loads(tarn.run('tune', '--json', '--each', path))['data']
    each = {row['conf']: row for row in tune['each']}
    for row in summary['helpful_settings']:
        for key in ('peak_reserved', 'ooms'):
            checks.same(f'{what}: {row["conf"]}: {key}', row[key], each[row['conf']][key])
        checks.same(f'{what}: {row["conf"]} helps',
                    (row['ooms'], row['peak_reserved']) <
                    (tune['recorded']['ooms'], tune['recorded']['peak_reserved']), True)
    fit = json.loads(tarn.run('fit', '--json', '--card', ','.join(
        card['card'] for card in summary['cards']), path))['data']
    checks.same(f'{what}: needed', summary['needed_bytes'], fit['settings'][0]['capacity'])
    checks.same(f'{what}: cards', [card['fits'] for card in summary['cards']],
                fit['settings'][0]['fits'])


def file_checks(checks, what, tarn, path, folder):
    snapshot = load(path)
    for device, trace in enumerate(snapshot['device_traces']):
        if trace:
            device_checks(checks, f'{what}: device {device}', tarn, path, snapshot, device, folder)
    if starts_empty(snapshot, 0) and snapshot['device_traces'][0]:
        half_checks(checks, what, tarn, path, snapshot, folder)


def recording_checks(tarn, path, conf, folder):
    """Returns what is wrong."""
    checks = Checks()
    what = f'{os.path.basename(path)}: {"as recorded" if conf is None else conf}'
    if conf is not None:
        target = os.path.join(folder, 'replayed.pickle')
        tarn.run('replay', '--force', '--conf', conf, tarn.save, target, path)
        path = target
    else:
        anonymized_checks(checks, what, tarn, path, folder)
        summary_checks(checks, f'{what}: summary', tarn, path)  # takes as long as all the others
    file_checks(checks, what, tarn, path, folder)
    return what, checks


def main(program, paths):
    if not os.access(program, os.X_OK):
        print(f'there is no {program}: run "make build" first')
        return 1
    tarn = Tarn(program)
    passed = 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            for conf in SETTINGS:
                what, checks = recording_checks(tarn, path, conf, folder)
                passed += not checks.failures
                failed += bool(checks.failures)
                if os.environ.get('VERBOSE'):
                    print(f'{what}: {checks.count} comparisons, {len(checks.failures)} failed')
                for failure in checks.failures[:5]:
                    print(f'FAILED {failure[:600]}')
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2:]))
