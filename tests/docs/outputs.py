# SPDX-License-Identifier: MIT
"""outputs.py PROGRAM [--write]: what documents show of the program's output is what it prints.

An indented block with a line `$ tarn ...` or `$ build/tarn ...` shows a command and its output, on
the recordings of tests/data/snapshots; dump.pickle is gpt2_varlen there. So does one of a script,
`$ examples/...`, and of a query, `$ sqlite3 FILE "SQL"`, which Python's own SQLite answers in the
form of that program. `...` stands for lines that are left out. Times may differ. Commands whose
output is not shown must succeed; those of a document run in its order. With --write the
documents are repaired: the shown parts keep their number of lines.
"""

import difflib
import glob
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INDENT = "    "
COMMAND = re.compile(r"    \$ (?:build/)?(tarn|sqlite3|examples/\S+) (.*)")
TIMES = re.compile(r"\d+(\.\d+)? (ns|us|ms|s)\b")


def documents():
    names = ["README.md"] + [
        os.path.relpath(name, ROOT)
        for pattern in ("docs/*.md", "docs/guide/*.md")
        for name in sorted(glob.glob(os.path.join(ROOT, pattern)))
    ]
    # Its snapshot is made by a program of the page itself, which text.sh compiles.
    return [name for name in names if name != os.path.join("docs", "guide", "c.md")]


def normal(line):
    return TIMES.sub("TIME", " ".join(line.split()))


def is_left_out(line):
    return line.strip() == "..."


def query(path, sql):
    """As sqlite3 prints it: a row per line, cells joined by '|'."""
    with sqlite3.connect(path) as database:
        rows = database.execute(sql).fetchall()
    return 0, ["|".join("" if cell is None else str(cell) for cell in row) for row in rows]


def run(program, name, arguments, folder):
    words = shlex.split(arguments, comments=True)
    words = [word.replace("tests/data/snapshots/", "") for word in words]
    if name == "sqlite3":
        return query(os.path.join(folder, words[0]), words[1])
    first = program if name == "tarn" else os.path.join(ROOT, name)
    if "*" in arguments:
        words = [found for word in words for found in expanded(word, folder)]
    result = subprocess.run([first, *words], cwd=folder, capture_output=True, text=True)
    return result.returncode, result.stdout.rstrip("\n").split("\n")


def expanded(word, folder):
    """What a shell makes of a pattern."""
    return sorted(glob.glob(word, root_dir=folder)) or [word]


def parts(shown):
    """The shown lines between what is left out."""
    found = [[]]
    for line in shown:
        if is_left_out(line):
            found.append([])
        else:
            found[-1].append(line)
    return found


def place(part, output, begin, is_first):
    """Where in the output a part is, or is most likely."""
    if is_first or not part:
        return begin

    def likeness(at):
        return sum(
            difflib.SequenceMatcher(None, normal(a), normal(b)).ratio()
            for a, b in zip(part, output[at:])
        )

    return max(range(begin, max(begin, len(output) - len(part)) + 1), key=likeness)


def told(shown, output):
    """The shown lines as the output has them."""
    lines = []
    begin = 0
    for number, part in enumerate(parts(shown)):
        if number > 0:
            lines.append(INDENT + "...")
        at = place([line[len(INDENT):] for line in part], output, begin, number == 0)
        lines += [(INDENT + line).rstrip() for line in output[at:at + len(part)]]
        begin = at + len(part)
    return lines


def blocks(lines):
    """(first line of output, first line behind it, program, arguments) of each command."""
    for i, line in enumerate(lines):
        match = COMMAND.match(line)
        if not match:
            continue
        end = i + 1
        while end < len(lines) and not lines[end].startswith(INDENT + "$ ") and (
            lines[end].startswith(INDENT) or not lines[end].strip()
        ):
            end += 1
        while end > i + 1 and not lines[end - 1].strip():
            end -= 1
        yield i + 1, end, match.group(1), match.group(2)


def check(program, document, folder, write):
    path = os.path.join(ROOT, document)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    passed = failed = 0
    ran = [
        (begin, end, f"{name} {arguments}", *run(program, name, arguments, folder))
        for begin, end, name, arguments in blocks(lines)
    ]
    for begin, end, command, code, output in reversed(ran):
        shown = lines[begin:end]
        right = told(shown, output) if shown else []
        if [normal(line) for line in right] == [normal(line) for line in shown]:
            if code in (0, 1):
                passed += 1
                continue
            print(f"FAIL {document}: {command}: exit code {code}")
        else:
            print(f"FAIL {document}: {command}")
            print("\n".join(difflib.unified_diff(shown, right, "shown", "printed", "", "", 0)))
        failed += 1
        if write:
            lines[begin:end] = right
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    return passed, failed


def main():
    program = os.path.abspath(sys.argv[1])
    if not os.path.exists(program):
        print(f"skip: there is no release build, {program}: make build")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    os.environ["LC_ALL"] = "C.UTF-8"
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        snapshots = os.path.join(ROOT, "tests", "data", "snapshots")
        for name in glob.glob(os.path.join(snapshots, "*.pickle.gz")):
            os.symlink(name, os.path.join(folder, os.path.basename(name)))
        shutil.copy(
            os.path.join(snapshots, "gpt2_varlen.pickle.gz"), os.path.join(folder, "dump.pickle")
        )
        for document in documents():
            counts = check(program, document, folder, "--write" in sys.argv)
            passed += counts[0]
            failed += counts[1]
    if failed:
        print("to repair: python3 tests/docs/outputs.py PROGRAM --write, then read the difference")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


sys.exit(main())
