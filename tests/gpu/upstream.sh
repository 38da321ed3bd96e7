#!/bin/sh
# SPDX-License-Identifier: MIT
# upstream.sh OUT PYTORCH_SOURCE [FILE...]: PyTorch's own tests of memory, with its allocator and
# with tarn. FILE is a path below PYTORCH_SOURCE/test; without one, those that concern this
# allocator. Results in OUT as they come, one JSON line per case; the cases that differ are printed
# last. A run that is repeated with the same OUT goes on where it stopped.
#
# Needs what torch_plug.sh has built in BUILD (default build/torch_plug). A case may take
# SECONDS_A_CASE (default 120), all of them SECONDS (default 540). TOGETHER=1 runs both allocators
# at the same time, which is for files whose cases do not fill the GPU; GPUS="0 1" does so with one
# on each GPU.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: tests/gpu/upstream.sh OUT PYTORCH_SOURCE [FILE...]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=${BUILD:-$root/build/torch_plug}
if ! python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    echo "skip: python3 has no torch with a GPU here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
build=$(cd "$build" && pwd)
export PYTHONPATH="$root/python${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
export TARN_LIBRARY_DIR="$build" TARN_CACHE_DIR="$build/cache"
exec python3 "$here/upstream.py" "$@"
