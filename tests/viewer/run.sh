#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh PROGRAM [FOLDER]: the viewer's page in headless Chromium (suite.mjs). Pictures of every
# view go to FOLDER. Its tools come from npm once, into build/npm; without node, Chromium or npm's
# packages all of it is skipped, with the reason.
set -u

tarn=$1
pictures=${2-}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tools=$root/build/npm

skip() { # REASON
    echo "skip: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

command -v node >/dev/null 2>&1 || skip "node is not installed"
node --version | awk -F'[v.]' '{ exit $2 < 20 }' ||
    skip "node $(node --version) is older than 20, which the tests' tools need"
browser=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -n "$browser" ] || skip "Chromium is not installed"

if ! cmp -s "$here/package-lock.json" "$tools/package-lock.json"; then
    command -v npm >/dev/null 2>&1 || skip "npm is not installed"
    rm -rf "$tools"
    mkdir -p "$tools"
    cp "$here/package.json" "$tools/"
    cp "$here/package-lock.json" "$tools/package-lock.json"
    if ! (cd "$tools" && npm ci --no-audit --no-fund --ignore-scripts) >"$tools/npm.log" 2>&1; then
        rm -f "$tools/package-lock.json"
        skip "npm cannot install the tools: $(tail -1 "$tools/npm.log")"
    fi
fi
cp "$here"/*.mjs "$tools/"

CHROMIUM=$browser
CHROMIUM_HEADLESS_SHELL=$(command -v chromium-headless-shell || true)
TEST_COUNTS=${pictures:+$pictures/test_counts} # for .ci/run
[ -z "$pictures" ] || mkdir -p "$pictures"
export CHROMIUM CHROMIUM_HEADLESS_SHELL TEST_COUNTS
if ! "$tools/node_modules/.bin/tsc" -p "$root/viewer/tsconfig.json"; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
exec node "$tools/suite.mjs" "$tarn" "$root/tests/data/snapshots" \
    "$tools/node_modules/axe-core/axe.min.js" ${pictures:+"$pictures"}
