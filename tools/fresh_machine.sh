#!/bin/sh
# SPDX-License-Identifier: MIT
# fresh_machine.sh FOLDER [SUITE MIRROR [COMPONENTS]]: proves `make run` and `make test` on a bare
# Debian 12, or on SUITE from MIRROR. Makes one in FOLDER (debootstrap, with git and make and
# nothing else), clones the committed HEAD into it and runs both there. FOLDER must not exist yet
# and stays for a look; about 1 GB and a few minutes. Needs root, debootstrap and a network; without
# MIRROR it is the one that this machine's apt uses. COMPONENTS are as in `main,universe`, which
# Ubuntu needs (24.04 is `noble`); by default `main`.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)

fail() {
    echo "fresh_machine: $*" >&2
    exit 1
}

usage() {
    fail "usage: tools/fresh_machine.sh FOLDER [SUITE MIRROR [COMPONENTS]]"
}

case ${1:-} in
-*) usage ;;
esac
case $# in
1) ;;
3 | 4) [ -n "$3" ] || fail "the mirror is empty" ;;
*) usage ;;
esac
suite=${2:-bookworm}
mirror=${3:-}
components=${4:-main}
[ "$(id -u)" -eq 0 ] || fail "must run as root: it makes a system and enters it (chroot, mount)"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
[ ! -e "$1" ] || fail "$1 exists already"
mkdir -p "$1"
root=$(cd "$1" && pwd)

# Lines of sources.list: as given, or where this machine gets Debian 12 from.
if [ -n "$mirror" ]; then
    echo "deb $mirror $suite $(echo "$components" | tr ',' ' ')" >"$root.sources"
else
    # shellcheck disable=SC2016 # apt fills these in
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) main' \
        'Identifier: Packages' 'Origin: Debian' 'Component: main' |
        awk '$3 ~ /^bookworm/' | sort -u >"$root.sources"
    mirror=$(awk '$3 == "bookworm" { print $2; exit }' "$root.sources")
    [ -n "$mirror" ] || fail "the apt sources of this machine have no Debian 12 (bookworm)"
fi

mounts=""
leave() {
    for mounted in $mounts; do
        umount "$mounted" || umount -l "$mounted" || true
    done
    rm -f "$root.sources"
}
trap leave EXIT
trap 'exit 1' HUP INT TERM

started=$(date +%s)
say() {
    echo "fresh_machine: $(($(date +%s) - started)) s: $*"
}

say "a bare $suite in $root"
debootstrap --variant=minbase --include=git,make,ca-certificates --components="$components" \
    "$suite" "$root" "$mirror" >"$root.log" 2>&1 || fail "debootstrap failed, see $root.log"
rm -f "$root.log"

cp "$root.sources" "$root/etc/apt/sources.list"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
apt-config dump --format '%F "%v";%n' Acquire |
    grep -E '^Acquire::(http|https|Check-)' >"$root/etc/apt/apt.conf.d/90host" || true
mounts="$root/proc"
mount -t proc proc "$root/proc"
mounts="$root/dev/pts $mounts" # the tests open terminals
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"

git clone --quiet --no-local "$source" "$root/root/tarn"
say "cloned $(git -C "$root/root/tarn" log -1 --format='%h %s')"

for target in run test; do
    say "make $target"
    # An empty environment but for proxies: what somebody has who has just logged in.
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" \
        chroot "$root" /bin/sh -c "cd /root/tarn && make $target" </dev/null ||
        fail "make $target failed on the fresh machine"
done
say "both commands work on a fresh $suite"
