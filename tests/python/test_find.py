# SPDX-License-Identifier: MIT
"""Where the package looks for its libraries: as installed, and in the sources."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
NAME = "libtarn.so.0"
OF_SOURCES = ("CMakeLists.txt", "python/pyproject.toml", "include/tarn/base.h", "src/libtarn.map")


def plant(*path):
    """A file that is no library."""
    file = os.path.join(*path)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "wb") as out:
        out.write(b"planted")
    return os.path.realpath(file)


class Finding(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def install(self, *path):
        """The package in that folder below the root."""
        package = os.path.join(self.root, *path, "tarn")
        shutil.copytree(os.path.join(ROOT, "python", "tarn"), package)
        return package

    def found_by(self, package):
        """What a fresh interpreter finds with that package."""
        environment = dict(os.environ, PYTHONPATH=os.path.dirname(package))
        environment.pop("TARN_LIBRARY_DIR", None)
        code = f"from tarn import _ffi; print(_ffi.find_library({NAME!r}))"
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def test_an_installed_package_ignores_a_build_folder_near_it(self):
        package = self.install("lib", "site-packages")
        plant(self.root, "lib", "build", NAME)
        plant(self.root, "build", NAME)
        self.assertEqual(self.found_by(package), NAME)

    def test_a_folder_called_python_is_no_checkout(self):
        package = self.install("python")
        plant(self.root, "build", NAME)
        self.assertEqual(self.found_by(package), NAME)

    def test_an_installed_package_uses_its_own_library(self):
        package = self.install("lib", "site-packages")
        plant(self.root, "lib", "build", NAME)
        own = plant(package, "lib", NAME)
        self.assertEqual(self.found_by(package), own)

    def checkout(self):
        package = self.install("python")
        for file in OF_SOURCES:
            plant(self.root, *file.split("/"))
        return package

    def test_the_sources_use_what_was_built_there(self):
        package = self.checkout()
        self.assertEqual(self.found_by(package), NAME)
        built = plant(self.root, "build", NAME)
        self.assertEqual(self.found_by(package), built)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a folder to somebody else")
    def test_a_build_folder_of_somebody_else_is_ignored(self):
        package = self.checkout()
        plant(self.root, "build", NAME)
        os.chown(os.path.join(self.root, "build"), 65534, 65534)
        self.assertEqual(self.found_by(package), NAME)

    def test_these_sources_are_sources(self):
        for file in OF_SOURCES:
            self.assertTrue(os.path.exists(os.path.join(ROOT, file)), file)
