#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""same_code.py TREE RESULTS [--jobs N] [--only PREFIX]: which mutants are no mistakes.

A mutant that survived, or that no test reached, is compiled once more, alone and as a release has
it: optimized and without assertions. If the compiler makes the same machine code of it as of the
right source, no program can tell them apart: it is equivalent. Such are terminators that are
assigned before they are read, comparisons whose sides are never equal, checks of what holds.
A function of a header is compiled alone, so that its arguments may be anything.

RESULTS is what run.py wrote; the verdicts in it are changed. Ends with run.py's table.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess

import run

DROPPED = ("-o", "-c", "-include") # and what follows each


def release_command(command):
    """The compiler's, without the file and what it writes."""
    words = command.split()
    kept = []
    at = 0
    while at < len(words):
        if words[at] in DROPPED:
            at += 2
            continue
        if not words[at].startswith(("-O", "-DTN_CHECK_LEVEL=", "-g", "-W")):
            kept.append(words[at])
        at += 1
    return [*kept, "-O2", "-w", "-DTN_CHECK_LEVEL=0"]


class Compiler:
    """Of the sources of a tree; remembers what it made of those without a mutant."""

    def __init__(self, tree):
        self.tree = tree
        self.header = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutant.h")
        self.commands = {}
        self.plain = {}
        with open(os.path.join(tree, "build/check/compile_commands.json"), encoding="utf-8") as f:
            for entry in json.load(f):
                if "/module_" in entry["command"]: # not one that a test compiles in its own way
                    self.commands[entry["file"]] = release_command(entry["command"])

    def source_of(self, path, function):
        """(command, text for standard input or None) that compiles a mutant of a function."""
        full = os.path.join(self.tree, path)
        if full in self.commands:
            return [*self.commands[full], full], None
        if path.endswith(".h"):
            folder = os.path.dirname(full)
            near = next((c for f, c in self.commands.items() if os.path.dirname(f) == folder),
                        None) or next(iter(self.commands.values()))
            return [*near, "-x", "c", "-"], (
                f'#include "{full}"\nvoid *const tn_the_function = (void *)&{function};\n')
        return None, None

    def compile(self, mutant, number):
        """Machine code as text; None if it does not compile."""
        command, text = self.source_of(mutant[1], mutant[3])
        if not command:
            return None
        made = subprocess.run([*command, "-include", self.header, f"-DTN_MUTANT_IS={number}",
                               "-S", "-o", "-"], input=text, capture_output=True, text=True,
                              check=False)
        return made.stdout if made.returncode == 0 else None

    def is_same(self, mutant):
        key = (mutant[1], mutant[3] if mutant[1].endswith(".h") else "")
        if key not in self.plain:
            self.plain[key] = self.compile(mutant, 0)
        return self.plain[key] is not None and \
            self.compile(mutant, int(mutant[0])) == self.plain[key]


def options():
    parser = argparse.ArgumentParser(description="which mutants are no mistakes")
    parser.add_argument("tree")
    parser.add_argument("results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="src/", help="files that begin so")
    return parser.parse_args()


def main():
    given = options()
    compiler = Compiler(os.path.abspath(given.tree))
    with open(given.results, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    asked = [row for row in rows
             if row[7] in ("survived", "unreached") and row[1].startswith(given.only)]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for row, same in zip(asked, pool.map(compiler.is_same, asked)):
            if same:
                row[7:] = ["equivalent", "same code"]
    with open(given.results, "w", encoding="utf-8") as f:
        f.writelines("\t".join(row) + "\n" for row in rows)
    run.print_table(run.count(rows))


if __name__ == "__main__":
    main()
