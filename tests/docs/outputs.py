# SPDX-License-Identifier: MIT
"""outputs.py PROGRAM [--write]: what documents show of the program's output is what it prints.

An indented block with a line `$ tarn ...` or `$ build/tarn ...` shows a command and its output, on
the recordings of tests/data/snapshots; dump.pickle is gpt2_varlen there. `...` stands for lines
that are left out. Times may differ. Commands whose output is not shown must succeed. With --write
the documents are repaired: the shown parts keep their number of lines.
"""

import difflib
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INDENT = "    "
COMMAND = re.compile(r"    \$ (?:build/)?tarn (.*)")
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


def run(program, arguments, folder):
    words = shlex.split(arguments, comments=True)
    words = [word.replace("tests/data/snapshots/", "") for word in words]
    result = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
    return result.returncode, result.stdout.rstrip("\n").split("\n")


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
    """(first line of output, first line behind it, arguments) of each command."""
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
        yield i + 1, end, match.group(1)


def check(program, document, folder, write):
    path = os.path.join(ROOT, document)
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    passed = failed = 0
    for begin, end, arguments in reversed(list(blocks(lines))):
        code, output = run(program, arguments, folder)
        shown = lines[begin:end]
        right = told(shown, output) if shown else []
        if [normal(line) for line in right] == [normal(line) for line in shown]:
            if code in (0, 1):
                passed += 1
                continue
            print(f"FAIL {document}: tarn {arguments}: exit code {code}")
        else:
            print(f"FAIL {document}: tarn {arguments}")
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
