#!/bin/sh
# SPDX-License-Identifier: MIT
# torch_plug.sh OUT_FOLDER [CASE...]: PyTorch on a GPU with tarn as its allocator, and the same
# without it. A process a case, each with a time limit; logs and results.jsonl in OUT_FOLDER as it
# goes, a table last. The last line counts the cases. `torch_plug.sh OUT_FOLDER list` names them.
#
# Needs compilers for C and C++ and CMake 3.22, python3 with torch, transformers and torchvision, no
# network. Builds in BUILD (default build/torch_plug). SECONDS_A_CASE is the limit; CASES_ONLY=1
# uses what is built already.
set -eu

if [ $# -lt 1 ]; then
    echo "usage: tests/gpu/torch_plug.sh OUT_FOLDER [CASE...]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
out=$1
shift
build=${BUILD:-$root/build/torch_plug}
limit=${SECONDS_A_CASE:-150}

# Name, allocator, settings. What runs with both allocators is compared. NAME_again and NAME_third
# are repeats: they show what torch itself repeats, and medians of times are compared, because one
# process is a percent faster or slower than the next.
all="
basics             tarn   -
basics_expandable  tarn   expandable_segments:True
out_of_memory      tarn   -
mempool            native -
mempool_installed  tarn   -
graphs             native -
graphs             tarn   -
graphs_expandable  tarn   expandable_segments:True
graph_reuse        tarn   graph_capture_record_stream_reuse:True
streams            tarn   -
threads            tarn   -
too_late           native -
fork               tarn   -
at_exit            tarn   -
share              tarn   -
spawned            tarn   -
pools              tarn   -
trackers           tarn   expandable_segments:True
fallback           tarn   -
entry_points       native -
entry_points       tarn   -
entry_points_again native -
entry_points_again tarn   -
entry_points_third native -
entry_points_third tarn   -
compiled           native -
compiled           tarn   -
compiled_expandable native expandable_segments:True
compiled_expandable tarn  expandable_segments:True
profiled           native -
profiled           tarn   -
pickled            native -
pickled            tarn   -
gpt2               native -
gpt2               tarn   -
gpt2_again         native -
gpt2_again         tarn   -
gpt2_third         native -
gpt2_third         tarn   -
gpt2_expandable    native expandable_segments:True
gpt2_expandable    tarn   expandable_segments:True
gpt2_expandable_again native expandable_segments:True
gpt2_expandable_again tarn expandable_segments:True
gpt2_expandable_third native expandable_segments:True
gpt2_expandable_third tarn expandable_segments:True
resnet_benchmark   native -
resnet_benchmark   tarn   -
graph_training     native -
graph_training     tarn   -
side_streams       native -
side_streams       tarn   -
growth             native -
growth             tarn   -
growth_again       native -
basics_compact     tarn   policy:compact
mempool_compact    tarn   policy:compact
graphs_compact     tarn   policy:compact
streams_compact    tarn   policy:compact
threads_compact    tarn   policy:compact
share_compact      tarn   policy:compact
trackers_compact   tarn   policy:compact
compiled_compact   native -
compiled_compact   tarn   policy:compact
gpt2_compact       native -
gpt2_compact       tarn   policy:compact
side_streams_compact native -
side_streams_compact tarn policy:compact
history            native -
history            tarn   -
tracker_equivalence native -
tracker_checkpointing native -
tracker_attribution native -
tracker_gpt2       native -
tracker_resnet     native -
tracker_llama      native -
tracker_iterations native -
tracker_labels     tarn   -
"

if [ "${1:-}" = list ]; then
    echo "$all" | awk 'NF { print $1 }' | sort -u
    exit 0
fi
if ! python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    echo "skip: python3 has no torch with a GPU here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

mkdir -p "$out" "$build"
out=$(cd "$out" && pwd)
build=$(cd "$build" && pwd)
: >"$out/results.jsonl"
export PYTHONPATH="$root/python" TARN_LIBRARY_DIR="$build" TARN_CACHE_DIR="$build/cache"
export PYTHONDONTWRITEBYTECODE=1

# What Python cannot reach of torch, with the flags by which the package compiles the class.
build_entry_points() {
    python3 - "$here/torch_plug/through_torch.cpp" "$build/through_torch.so" <<'END'
import subprocess, sys
from tarn.torch import _class
line = [
    part
    for part in _class.command(sys.argv[2])
    if not part.endswith(".cpp") and part != "-fvisibility=hidden"  # ctypes finds what is exported
]
subprocess.run([*line, sys.argv[1], "-ltorch_cuda", "-ltorch_cpu"], check=True)
END
}

if [ -z "${CASES_ONLY:-}" ] && ! {
    cmake -S "$here/torch_plug" -B "$build" -DTARN_CHECKS="${CHECKS:-none}" &&
        cmake --build "$build" -j "$(nproc)" && python3 -m tarn.torch --build && build_entry_points
} >"$out/build.log" 2>&1; then
    tail -n 20 "$out/build.log"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi

run_case() { # NAME ALLOCATOR SETTINGS
    case $3 in
    -) settings=NO_SETTINGS=1 ;;
    policy:*) settings=TARN_ALLOC_CONF=$3 ;; # torch refuses it
    *) settings=PYTORCH_ALLOC_CONF=$3 ;;
    esac
    log=$out/$1.$2.log
    status=0
    # Sums in the order of the hardware's choice would differ from run to run.
    # Each compiles for itself, because compiling allocates as well.
    env -u PYTORCH_CUDA_ALLOC_CONF -u TARN_ALLOC_CONF -u PYTORCH_ALLOC_CONF "$settings" \
        TORCHINDUCTOR_CACHE_DIR="$out/inductor/$1.$2" CUBLAS_WORKSPACE_CONFIG=:4096:8 \
        ENTRY_POINTS="$build/through_torch.so" \
        timeout -k 5 "$limit" python3 "$here/torch_cases.py" "$1" "$2" \
        >"$log" 2>&1 </dev/null || status=$?
    python3 "$here/torch_table.py" line "$log" "$1" "$2" "$status" >>"$out/results.jsonl"
    tail -n 1 "$out/results.jsonl" | cut -c 1-150
}

echo "$all" | while read -r name allocator settings; do
    [ -n "$name" ] || continue
    wanted=1
    for case in "$@"; do
        wanted=0
        [ "$case" != "$name" ] || { wanted=1 && break; }
    done
    [ "$wanted" -eq 0 ] || run_case "$name" "$allocator" "$settings"
done
python3 "$here/torch_table.py" table "$out/results.jsonl" | tee "$out/table.txt"
