# SPDX-License-Identifier: MIT
"""schemas.py TARN SCHEMAS CASES DATA WATCHED: JSON documents of the program are what schemas say.

Each command that has --json needs SCHEMAS/COMMAND.json. What it prints of the recordings of DATA,
under many options, and what CASES expect of it are validated. Schemas are closed: a member that
they do not name is refused, so that they cannot fall behind; the test adds one everywhere and
expects an error.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    if os.access('/usr/bin/python3', os.X_OK) and 'TARN_SYSTEM_PYTHON' not in os.environ:
        os.environ['TARN_SYSTEM_PYTHON'] = '1'  # has what the system's packages bring
        os.execv('/usr/bin/python3', ['/usr/bin/python3', *sys.argv])
    print('skip: no python3-jsonschema here')
    print('0 passed, 0 failed, 1 skipped')
    sys.exit(0)

SELECTION = '--stream 0 --pool default --min-size 1 --max-size 1TiB --match . --where size>0'
PARTS = ['', SELECTION, '--pool private', '--pool 0,0', '--events 2..40', '--stream 77']
GROUPINGS = (
    'stack frame function file line category stream pool segment size annotation metadata '
    'compile module'
).split()
BY = [f'--by {grouping}' for grouping in GROUPINGS]
TREES = ['--tree', '--tree --min-share 0 --rows 1000', '--tree --min-share 40']
MANY = [part for part in PARTS if part] + BY + ['-n 0', '-n 1000', '--frames own']
FORMS = {
    'check': [''],
    'churn': ['', *MANY, '--max-lifetime 4'],
    'diff': ['', *MANY, '--at start', '--ignore-lines', '--at start --to end'],
    'fit': ['', '--card 1GiB,H200', '--conf expandable_segments:True'],
    'frag': ['', *MANY, '--at end', '--at start'],
    'info': ['', *PARTS],
    'leaks': ['', *MANY, '--steps 2', '--steps 9'],
    'live': ['', *MANY, *TREES, '--at start', '--at end', '--at event:4'],
    'oom': ['', *MANY, '--device-total 1GiB'],
    'peak': ['', *MANY, *TREES],
    'ranks': ['', *BY],
    'replay': [
        '',
        '--conf expandable_segments:True',
        '--memory-limit 64MiB',
        '--measured MEASURED',
    ],
    'scale': ['', '--factor all=2', '--match conv|linear=2 --factor all=1.5 --card H200'],
    'steps': ['', '--pool private', '--events 2..40', '-n 1', '--parts 3', '--parts 40'],
    'summary': ['', '--reserve 0'],
    'top': ['', *MANY, *TREES, '--sort count', '--at start', '--at end'],
    'tune': ['--tries 6', '--tries 6 --goal capacity', '--each --tries 6', '--tries 3 --no-limit'],
}
SLOW = {'fit', 'replay', 'scale', 'summary', 'tune'}  # replays: not of every recording
SLOW_RECORDINGS = {'tiny', 'oom'}
MANY_FORMS = {'tiny'}  # the others: one or three forms of each command
OF_SETS = {'diff': 2, 'ranks': 3}  # how many files they take

passed = failed = 0


def count(name, is_good, why=''):
    global passed, failed
    passed += is_good
    failed += not is_good
    if not is_good:
        print(f'FAIL {name}: {why}')


# ---- schemas ----


def subschemas(schema, path='#'):
    """All schemas within one, with their paths."""
    yield path, schema
    for key in ('properties', 'patternProperties', '$defs'):
        for name, child in schema.get(key, {}).items():
            yield from subschemas(child, f'{path}/{key}/{name}')
    for key in ('items', 'additionalProperties'):
        if isinstance(schema.get(key), dict):
            yield from subschemas(schema[key], f'{path}/{key}')
    for key in ('oneOf', 'anyOf', 'allOf'):
        for i, child in enumerate(schema.get(key, [])):
            yield from subschemas(child, f'{path}/{key}/{i}')


def open_objects(schema):
    """Paths of objects that would accept any member."""
    for path, part in subschemas(schema):
        if part.get('type') == 'object' and part.get('additionalProperties', True) is True:
            yield path


def load_schemas(folder):
    schemas = {}
    for path in sorted(glob.glob(os.path.join(folder, '*.json'))):
        name = os.path.basename(path)[: -len('.json')]
        with open(path, encoding='utf-8') as file:
            schema = json.load(file)
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
            loose = list(open_objects(schema))
            count(f'schema {name}', not loose, f'accepts any member: {loose}')
        except jsonschema.SchemaError as error:
            count(f'schema {name}', False, error.message)
        schemas[name] = jsonschema.Draft202012Validator(schema)
    return schemas


def objects(value, path=()):
    """All objects within a document."""
    if isinstance(value, dict):
        yield path, value
        members = value.items()
    else:
        members = enumerate(value) if isinstance(value, list) else ()
    for key, child in members:
        yield from objects(child, path + (key,))


def accepts_unknown(validator, document, path):
    """Whether a member that no schema names would pass there."""
    place = dict(objects(document))[path]
    place['not a member'] = 'of any schema'
    accepted = validator.is_valid(document)
    del place['not a member']
    return accepted


def refuses_unknown(validator, document):
    """The paths of objects that accept any member."""
    paths = [path for path, _ in objects(document)][:200]
    return [path for path in paths if accepts_unknown(validator, document, path)]


def command_of(document):
    """From "tarn.peak/1", "tarn.config.options/1"."""
    found = re.fullmatch(r'tarn\.([a-z]+)(?:\.[a-z]+)?/\d+', document.get('schema', ''))
    return found.group(1) if found else None


def problem_of(schemas, document, command):
    if command_of(document) != command or command not in schemas:
        return f'schema {document.get("schema")!r} is not of a known command'
    error = jsonschema.exceptions.best_match(schemas[command].iter_errors(document))
    if error is None:
        return ''
    return f'{error.json_path}: {error.message[:300]}'


# ---- documents ----


class Program:
    def __init__(self, path, data):
        self.path = path
        self.data = data
        self.seen = {}  # a long document of each schema

    def run(self, arguments, given=None):
        result = subprocess.run(
            [self.path, *arguments], input=given, capture_output=True, text=True, check=False
        )
        return result.returncode, result.stdout

    def commands(self):
        """Those that have --json."""
        _, text = self.run(['help'])
        names = re.findall(r'^  ([a-z_-]+)  ', text, re.M)
        return [name for name in names if '--json ' in self.run(['help', name])[1]]

    def check(self, schemas, command, arguments, given=None):
        label = ' '.join(['tarn', *arguments])
        code, text = self.run(arguments, given)
        if code not in (0, 1) or not text:  # nothing to report: told in a sentence
            return code
        try:
            document = json.loads(text)
        except ValueError as error:
            count(label, False, error)
            return code
        why = problem_of(schemas, document, command)
        count(label, not why, why)
        name = document.get('schema')
        if not why and len(text) > len(json.dumps(self.seen.get(name, {}))):
            self.seen[name] = document
        return code


def check_reports(program, schemas, recordings):
    measured = os.path.join(program.data, 'measured.json')
    for command, forms in FORMS.items():
        results = 0
        for i, recording in enumerate(recordings):
            name = os.path.basename(recording).split('.')[0]
            if command in SLOW and name not in SLOW_RECORDINGS:
                continue
            files = [recordings[(i + k) % len(recordings)] for k in range(OF_SETS.get(command, 1))]
            for form in forms if name in MANY_FORMS else forms[: 3 if name == 'multistream' else 1]:
                words = form.replace('MEASURED', measured).split()
                code = program.check(schemas, command, [command, '--json', *words, *files])
                results += code in (0, 1)
        count(f'{command}: documents', results >= 2, f'only {results}')


def check_others(program, schemas, data):
    for log in sorted(glob.glob(os.path.join(data, 'tracker', '*.jsonl.gz'))):
        for more in ([], ['--everything']):
            program.check(schemas, 'track', ['track', '--json', *more, log])
    for settings in ([], [''], ['max_split_size_mb:32'], ['roundup_power2_divisions:[64:8,>:1]']):
        program.check(schemas, 'config', ['config', '--json', *settings])
    bad = '[{"address": 100, "total_size": 8, "blocks": [{"size": 4, "state": "inactive"}]}]'
    program.check(schemas, 'check', ['check', '--json', '-'], bad)
    with tempfile.TemporaryDirectory() as folder:  # without history, and with a foreign setting
        path = os.path.join(folder, 'state.json')
        block = {'address': 0, 'size': 512, 'requested_size': 500, 'state': 'active_allocated'}
        segment = {'device': 0, 'address': 0, 'total_size': 512, 'stream': 3, 'blocks': [block]}
        with open(path, 'w', encoding='utf-8') as file:
            json.dump({'segments': [segment], 'other': {'a': 1}}, file)
        for command in ('info', 'live', 'top', 'frag', 'summary', 'check', 'peak', 'oom'):
            program.check(schemas, command, [command, '--json', path])


def check_watch(program, schemas, watched):
    with tempfile.TemporaryDirectory() as folder:
        os.environ['XDG_RUNTIME_DIR'] = folder
        for settings in ('', 'policy:compact'):
            os.environ['TARN_ALLOC_CONF'] = settings
            with subprocess.Popen([watched, 'sim:7GiB', '30'], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL) as process:
                process.stdout.readline()
                program.check(schemas, 'watch', ['watch', '--json'])
                program.check(schemas, 'watch', ['watch', '--json', str(process.pid)])
                process.kill()


def check_cases(schemas, cases):
    found = 0
    for path in sorted(glob.glob(os.path.join(cases, '*', '*.stdout'))):
        with open(path, encoding='utf-8', errors='replace') as file:
            text = file.read()
        if not text.startswith('{\n  "schema"'):
            continue
        try:
            document = json.loads(text)
        except ValueError:  # the case cuts it
            continue
        found += 1
        why = problem_of(schemas, document, command_of(document))
        count(os.path.relpath(path, cases), not why, why)
    count('expected documents', found > 15, f'only {found}')


def main():
    tarn, folder, cases, data, watched = sys.argv[1:]
    recordings = sorted(glob.glob(os.path.join(data, 'snapshots', '*.pickle.gz')))
    recordings = [path for path in recordings if '.before.' not in path]
    program = Program(tarn, data)
    schemas = load_schemas(folder)
    commands = program.commands()
    count('every command has a schema', sorted(schemas) == sorted(commands),
          f'{sorted(set(schemas) ^ set(commands))} differ')
    tried = sorted([*FORMS, 'config', 'track', 'watch'])
    count('every command is tried', tried == sorted(commands),
          f'{sorted(set(tried) ^ set(commands))} differ')
    check_reports(program, schemas, recordings)
    check_others(program, schemas, data)
    check_watch(program, schemas, watched)
    check_cases(schemas, cases)
    for name, document in program.seen.items():
        passes = refuses_unknown(schemas[command_of(document)], document)
        count(f'{name} refuses unknown members', not passes, f'not at {passes[:5]}')
    print(f'{passed} passed, {failed} failed, 0 skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
