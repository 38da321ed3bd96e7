# SPDX-License-Identifier: MIT
"""The ctypes declarations are those of the headers: names, parameters, results, layouts."""

import ctypes
import os
import re
import subprocess
import tempfile
import unittest

from tarn import _ffi

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
INCLUDE = os.path.join(ROOT, "include", "tarn")
PLUG = os.path.join(ROOT, "plug", "pytorch")
PLUG_HEADERS = [os.path.join(PLUG, "torch_interface.h")]

POINTER = ctypes.POINTER
SCALARS = {
    "void": None,
    "bool": ctypes.c_bool,
    "int": ctypes.c_int,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "tarn_ptr": ctypes.c_uint64,
    "tarn_stream": ctypes.c_uint64,
    "const char*": ctypes.c_char_p,
    "char*": POINTER(ctypes.c_char),
    "const void*": ctypes.c_void_p,
    "void**": POINTER(ctypes.c_void_p),
    "void*": ctypes.c_void_p,
    "enum tarn_status": ctypes.c_int,
    "uint64_t*": POINTER(ctypes.c_uint64),
    "tarn_ptr*": POINTER(ctypes.c_uint64),
    "size_t*": POINTER(ctypes.c_size_t),
    "enum tarn_snapshot_format": ctypes.c_int,
    "enum tarn_flame_view": ctypes.c_int,
    "enum tarn_track_format": ctypes.c_int,
    "enum tarn_track_point": ctypes.c_int,
    "enum tarn_units": ctypes.c_int,
    "enum tarn_track_names": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "tarn_pressure_callback": _ffi.PRESSURE,
    "uint32_t": ctypes.c_uint32,
    "uint32_t*": POINTER(ctypes.c_uint32),
    "tarn_pool_filter": _ffi.POOL_FILTER,
}
OPAQUE = (
    "tarn_device", "tarn_allocator", "tarn_pool",
    "tarn_history", "tarn_snapshot", "tarn_pinned", "tarn_tracker",
    "tarn_file", "tarn_devices", "tarn_fleet", "tarn_report_options",
)  # fmt: skip


def headers():
    paths = [os.path.join(INCLUDE, name) for name in sorted(os.listdir(INCLUDE))]
    return paths + PLUG_HEADERS


def declarations():
    """name: (result, parameters) as C text, of every function marked TARN_API."""
    found = {}
    for path in headers():
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        pattern = r"TARN_API\s+([^;{}]*?)(\btarn_\w+)\s*\(([^;{}]*?)\)\s*(?:TARN_MUST_CHECK\s*)?;"
        for result, name, parameters in re.findall(pattern, text):
            found[name] = (" ".join(result.split()), " ".join(parameters.split()))
    return found


def ctype_of(text, is_parameter):
    """The ctypes type of a C type, `name` of a parameter included."""
    text = re.sub(r"\s*\*\s*", "*", text).strip()
    if is_parameter:  # the name is the last word after a blank or a star
        text = re.match(r"(.*[ *])\w+$", text).group(1).strip()
    if text in SCALARS:
        return SCALARS[text]
    words = re.fullmatch(r"(?:const )?struct (\w+)(\**)", text)
    if words and words.group(1) in OPAQUE:
        return ctypes.c_void_p if words.group(2) == "*" else POINTER(ctypes.c_void_p)
    if words and words.group(2) in ("", "*"):
        for structure in _ffi.STRUCTURES:
            if structure._c_name_ == words.group(1):
                return POINTER(structure) if words.group(2) else structure
    raise AssertionError(f"no ctypes type for {text!r}")


class Prototypes(unittest.TestCase):
    def test_every_prototype_is_the_headers(self):
        declared = declarations()
        self.assertGreater(len(declared), 80)
        for name, (result, arguments) in {**_ffi.LIBRARY, **_ffi.CLASS}.items():
            with self.subTest(name=name):
                self.assertIn(name, declared)
                c_result, c_parameters = declared[name]
                parts = [] if c_parameters == "void" else c_parameters.split(",")
                self.assertEqual(len(parts), len(arguments), "number of parameters")
                self.assertIs(ctype_of(c_result, False), result)
                for part, argument in zip(parts, arguments):
                    self.assertIs(ctype_of(part, True), argument, part)

    def test_the_check_sees_a_difference(self):
        self.assertIsNot(ctype_of("uint64_t size", True), ctypes.c_int)
        with self.assertRaises(AssertionError):
            ctype_of("struct tarn_unheard_of *thing", True)

    def test_status_numbers_are_the_headers(self):
        with open(os.path.join(INCLUDE, "status.h"), encoding="utf-8") as file:
            numbers = dict(re.findall(r"X\((\w+), (\d+),", file.read()))
        self.assertEqual(int(numbers["OK"]), _ffi.STATUS_OK)
        self.assertEqual(int(numbers["ERR_OUT_OF_MEMORY"]), _ffi.STATUS_OUT_OF_MEMORY)
        self.assertEqual(int(numbers["ERR_STATE"]), _ffi.STATUS_STATE)
        self.assertEqual(int(numbers["ERR_NOT_SUPPORTED"]), _ffi.STATUS_NOT_SUPPORTED)

    def test_names_of_actions_and_levels_are_the_headers(self):
        with open(os.path.join(INCLUDE, "event.h"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(tuple(re.findall(r'X\(\w+, "(\w+)"\)', text)), _ffi.ACTIONS)
        levels = re.search(r"enum tarn_context_level \{(.*?)\}", text, re.S).group(1)
        self.assertEqual(
            [name.lower() for name in re.findall(r"TARN_CONTEXT_(\w+)", levels)],
            [name or "never" for name in _ffi.CONTEXT_LEVELS],
        )
        self.assertEqual(list(_ffi.CONTEXT_LEVELS.values()), [0, 1, 2, 3])
        with open(os.path.join(INCLUDE, "snapshot.h"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"enum tarn_snapshot_format \{\s*TARN_SNAPSHOT_PICKLE,")
        with open(os.path.join(INCLUDE, "report.h"), encoding="utf-8") as file:
            views = re.search(r"enum tarn_flame_view \{(.*?)\}", file.read(), re.S).group(1)
        self.assertEqual(re.findall(r"TARN_FLAME_(\w+)", views), ["SEGMENTS", "MEMORY"])
        self.assertEqual((_ffi.FLAME_SEGMENTS, _ffi.FLAME_MEMORY), (0, 1))

    def test_numbers_of_the_tracker_are_the_headers(self):
        with open(os.path.join(INCLUDE, "tracker.h"), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        kinds = re.search(r"enum tarn_track_kind \{(.*?)TARN_TRACK_KIND_COUNT", text, re.S).group(1)
        self.assertEqual(tuple(re.findall(r"TARN_TRACK_(\w+)", kinds)), _ffi.TRACK_KINDS)
        for name, value in (
            ("BACKWARD", _ffi.TRACK_BACKWARD),
            ("CATEGORIES_MAX", _ffi.TRACK_CATEGORIES_MAX),
            ("DEVICES_MAX", _ffi.TRACK_DEVICES_MAX),
            ("AUTO", _ffi.TRACK_AUTO),
        ):
            found = re.search(rf"TARN_TRACK_{name} = (\w+)", text).group(1)
            self.assertEqual(int(found, 0), value, name)

    def test_flags_are_the_headers(self):
        with open(os.path.join(INCLUDE, "request.h"), encoding="utf-8") as file:
            flags = dict(re.findall(r"TARN_ALLOC_(\w+) = (\d+)", file.read()))
        for name, number in flags.items():
            self.assertEqual(getattr(_ffi, f"ALLOC_{name}"), int(number))
        self.assertEqual(len(flags), 3)

    def test_names_of_counters_are_the_headers(self):
        with open(os.path.join(INCLUDE, "stats.h"), encoding="utf-8") as file:
            keys = re.findall(r'X\(\w+, "(\w+)"', file.read())
        self.assertEqual(tuple(keys), _ffi.STAT_KINDS)


def c_name(field):
    return {"as_": "as"}.get(field, field)


class Layouts(unittest.TestCase):
    def test_every_offset_is_the_compilers(self):
        compiler = os.environ.get("CC", "cc")
        lines = [
            "#include <stddef.h>",
            "#include <stdio.h>",
            '#include "tarn/capture.h"',
            '#include "tarn/fleet.h"',
            '#include "tarn/pages.h"',
            '#include "tarn/pinned.h"',
            '#include "tarn/block.h"',
            '#include "tarn/pool.h"',
            '#include "tarn/pressure.h"',
            '#include "tarn/report.h"',
            '#include "tarn/sleep.h"',
            '#include "tarn/tracker.h"',
            "int main(void) {",
        ]
        expected = []
        for structure in _ffi.STRUCTURES:
            name = structure._c_name_
            lines.append(f'printf("%zu\\n", sizeof(struct {name}));')
            expected.append((name, ctypes.sizeof(structure)))
            for field, _ in structure._fields_:
                member = c_name(field)
                lines.append(f'printf("%zu\\n", offsetof(struct {name}, {member}));')
                expected.append((f"{name}.{member}", getattr(structure, field).offset))
        lines.append("return 0; }")
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "layout.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
            program = os.path.join(folder, "layout")
            subprocess.run(
                [compiler, "-I", ROOT, "-I", os.path.join(ROOT, "include"), source, "-o", program],
                check=True,
            )
            printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        numbers = [int(line) for line in printed.split()]
        self.assertEqual(len(numbers), len(expected))
        for (what, ours), number in zip(expected, numbers):
            self.assertEqual(ours, number, what)
