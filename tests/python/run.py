# SPDX-License-Identifier: MIT
"""Runs every test of this folder; the last line counts the cases."""

import os
import sys
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", "..", "python"), here]

result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(
    unittest.defaultTestLoader.discover(here)
)
for test, reason in result.skipped:
    print(f"skip: {test.id()}: {reason}")
failed = len(result.failures) + len(result.errors)
passed = result.testsRun - failed - len(result.skipped)
print(f"{passed} passed, {failed} failed, {len(result.skipped)} skipped")
sys.exit(1 if failed or not passed else 0)
