#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""coverage_branches.py EXPORT ROOT [--list PREFIX]: counts branches of ROOT/src by folder.

EXPORT is what `llvm-cov export` writes. --list also prints those that were not taken, of files
below PREFIX: FILE:LINE:COLUMN, the value that the condition never had, and its text. Functions of
headers, which each source compiles for itself, count once, as does each use of a macro.

Not counted: the default that the compiler adds to a switch which has a case for each value of its
enumeration (it warns when one is missing, -Wswitch-enum; a switch over numbers has a default of its
own), and cases that lead to tn_no_case(), where checked builds stop (src/base/assertion.h).
"""
import argparse
import collections
import json
import os

EXPANSION = 1 # kind of a region


class Sources:
    def __init__(self):
        self.lines = {}

    def line(self, path, number):
        if path not in self.lines:
            with open(path, encoding="utf-8") as f:
                self.lines[path] = f.read().split("\n")
        return self.lines[path][number - 1]

    def is_switch(self, path, branch):
        return self.line(path, branch[0])[:branch[1] - 1].rstrip().endswith("switch (")

    def is_marked_case(self, path, branch):
        """A case label, if the labels that follow it lead to tn_no_case()."""
        number = branch[0]
        while self.line(path, number).lstrip().startswith(("case ", "default:")):
            number += 1
        return number > branch[0] and self.line(path, number).strip() == "tn_no_case();"

    def text(self, path, branch):
        line = self.line(path, branch[0])
        return line[branch[1] - 1:branch[3] - 1 if branch[2] == branch[0] else None]


def places(function, path):
    """Of each file of a function, where it begins: macros are files of their own."""
    at = {0: (path,)}
    waiting = [r for r in function["regions"] if r[7] == EXPANSION]
    while waiting:
        known = [r for r in waiting if r[5] in at]
        if not known:
            break
        for region in known:
            at[region[6]] = at[region[5]] + (region[0], region[1])
        waiting = [r for r in waiting if r not in known]
    return at


def collect(export, root, sources):
    """file -> place -> [times true, times false, branch, file of the text]."""
    prefix = os.path.join(root, "src", "")
    files = collections.defaultdict(dict)
    for function in export["data"][0]["functions"]:
        names = [os.path.normpath(name) for name in function["filenames"]]
        path = names[0]
        if not path.startswith(prefix):
            continue
        at = places(function, path)
        for branch in function["branches"]:
            text = names[branch[6]]
            if sources.is_switch(text, branch) or sources.is_marked_case(text, branch):
                continue
            place = at.get(branch[6], (text,)) + tuple(branch[:4])
            counts = files[path].setdefault(place, [0, 0, branch, text])
            counts[0] += branch[4]
            counts[1] += branch[5]
    return files


def print_missing(files, root, below, sources):
    for path in sorted(files):
        name = os.path.relpath(path, root)
        if not name.startswith(below):
            continue
        for place, (true, false, branch, text) in sorted(files[path].items()):
            line, column = place[1:3]
            for count, value in ((true, "true"), (false, "false")):
                if count == 0:
                    print(f"{name}:{line}:{column}: never {value}: {sources.text(text, branch)}")


def print_table(files, root):
    folders = collections.defaultdict(lambda: [0, 0])
    for path, branches in files.items():
        folder = "/".join(os.path.relpath(path, root).split(os.sep)[:2])
        for name in (folder, "all"):
            folders[name][0] += 2 * len(branches)
            folders[name][1] += sum((t > 0) + (f > 0) for t, f, _, _ in branches.values())
    for name in sorted(folders, key=lambda n: (n == "all", n)):
        count, reached = folders[name]
        print(f"| {name} | {count} | {reached} | {100 * reached / count:.1f} % |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("export")
    parser.add_argument("root")
    parser.add_argument("--list")
    arguments = parser.parse_args()
    root = os.path.abspath(arguments.root)
    with open(arguments.export, encoding="utf-8") as f:
        export = json.load(f)
    sources = Sources()
    files = collect(export, root, sources)
    if arguments.list is not None:
        print_missing(files, root, arguments.list, sources)
    print_table(files, root)


if __name__ == "__main__":
    main()
