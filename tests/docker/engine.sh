#!/usr/bin/env bash
# A Docker engine for the tests, on a bare Debian 12 as root, from Debian's mirror alone.
#
#   engine.sh up DIR       install what is missing, start an engine whose every file is below DIR
#   engine.sh image        make the test image on the engine of DOCKER_HOST, if it is not there
#   engine.sh down DIR     stop the engine of DIR and leave nothing: no process, no mount, no file
#
# The root file system of the image takes a minute or two to make and is kept in the user's cache folder.
set -euo pipefail

suite=bookworm
packages=python3,python3-pytest
IMAGE=${ADJUDGE_TEST_IMAGE:-adjudge-test:$suite-2}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/adjudge-tests

install_missing() {
    local missing=()
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    [[ $(id -u) == 0 ]] || { echo "missing packages: ${missing[*]}; install them or run this as root" >&2; exit 2; }
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o DPkg::Lock::Timeout=300 update
    # policy-rc.d: the package must not start a service of its own
    local policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
        trap 'rm -f /usr/sbin/policy-rc.d' RETURN
    fi
    apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" >/dev/null
}

up() {
    local dir=$1
    [[ $(id -u) == 0 ]] || { echo "an engine can be started by root only" >&2; exit 2; }
    command -v apt-get >/dev/null || command -v dockerd >/dev/null || { echo "there is no dockerd" >&2; exit 2; }
    command -v dockerd >/dev/null || install_missing docker.io
    mkdir -p "$dir"/{data,exec}
    setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" --host "unix://$dir/docker.sock" \
        --pidfile "$dir/docker.pid" --iptables=false --bridge=none </dev/null >"$dir/log" 2>&1 &
    for _ in $(seq 300); do
        if [[ -S $dir/docker.sock ]] && docker -H "unix://$dir/docker.sock" info >/dev/null 2>&1; then
            return 0
        fi
        kill -0 $! 2>/dev/null || break
        sleep 0.2
    done
    echo "dockerd did not start: $(tail -n 3 "$dir/log")" >&2
    down "$dir"
    exit 2
}

image() {
    docker image inspect "$IMAGE" >/dev/null 2>&1 && return 0
    local archive=$cache/$suite-${packages//,/+}.tar
    if [[ ! -s $archive ]]; then
        command -v debootstrap >/dev/null || install_missing debootstrap
        [[ $(id -u) == 0 ]] || { echo "the test image can be made by root only" >&2; exit 2; }
        mkdir -p "$cache"
        local root
        root=$(mktemp -d "$cache/root.XXXXXX")
        debootstrap --variant=minbase --include="$packages" $suite "$root" >"$cache/debootstrap.log" 2>&1 || {
            tail -n 3 "$cache/debootstrap.log" >&2
            rm -rf --one-file-system "$root"
            exit 2
        }
        rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
        tar -C "$root" -cf "$archive.part" .
        mv "$archive.part" "$archive"
        rm -rf --one-file-system "$root"
    fi
    docker import "$archive" "$IMAGE" >/dev/null
}

down() {
    local dir=$1 pid
    [[ -d $dir ]] || return 0
    if pid=$(cat "$dir/docker.pid" 2>/dev/null) && kill "$pid" 2>/dev/null; then
        for _ in $(seq 150); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.2
        done
        kill -9 "$pid" 2>/dev/null || true
    fi
    # what still names the folder on its command line (containerd and its shims) is of this engine
    for pid in /proc/[0-9]*; do
        if tr '\0' ' ' <"$pid/cmdline" 2>/dev/null | grep -q -e "containerd.* $dir/" -e "containerd.*$dir/exec"; then
            kill -9 "${pid#/proc/}" 2>/dev/null || true
        fi
    done
    awk -v dir="$dir/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | while read -r mount; do
        umount -l "$mount" 2>/dev/null || true
    done
    find /sys/fs/cgroup -depth -type d -path '*/docker*' -exec rmdir {} + 2>/dev/null || true
    rm -rf --one-file-system "$dir"
}

case ${1-} in
up) up "$2" ;;
image) image && echo "$IMAGE" ;;
down) down "$2" ;;
*) sed -n '2,8s/^# \?//p' "$0" >&2; exit 1 ;;
esac
