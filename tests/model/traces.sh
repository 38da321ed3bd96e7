# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# traces.sh: what the scripts that replay traces of a model have in common, to be sourced with the
# replaying program as "$1" and `model` as the model's name. Leaves in an empty folder, where Spin
# can leave its files, or ends the script where there is no Spin.
# shellcheck disable=SC2034 # for those scripts
replay=$(realpath "$1")
# shellcheck disable=SC2154 # from them
promela=$(cd "$(dirname "$0")" && pwd)/$model.pml

if ! command -v spin >/dev/null 2>&1; then
    echo "skip: traces of the model need spin (package spin)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cd "$work" || exit 1

# random_run SEED STEPS [OPTION...]: what the model prints in a random run; fails where it does.
random_run() {
    seed=$1
    steps=$2
    shift 2
    spin -T -DTRACE "$@" "-n$seed" "-u$steps" "$promela" >output
    if grep -E 'assertion violated|rror:' output >&2; then
        return 1
    fi
    cat output
}
