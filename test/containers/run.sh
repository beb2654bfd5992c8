#!/usr/bin/env bash
# bash test/containers/run.sh [arguments of vitest]   runs the tests of this folder with a Docker engine of their own
# bash test/containers/run.sh --possible              fails if this machine does not allow that, and prints why
#
# Runs as root on Debian with Node, debootstrap and slirp4netns. The engine comes from Debian's packages; what the project
# pulls from image registries is made from packages too (images). Everything is in a folder that is removed in the end;
# TEST_CONTAINERS_FOLDER names one that is kept, so that the next run need not make the engine and its images again.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "$*" && exit 1; }

possible() {
  [ "$(id -u)" = 0 ] || fail 'it needs root'
  [ -c /dev/net/tun ] || fail 'there is no /dev/net/tun'
  [ -w /sys/fs/cgroup ] || fail '/sys/fs/cgroup is read-only'
  unshare --mount --net --pid --ipc --uts --fork sh -c 'mount -t proc proc /proc && mount -t sysfs sysfs /sys' 2>/dev/null ||
    fail 'namespaces with their own mounts are not allowed here'
}
possible
[ "${1-}" != --possible ] || exit 0
type debootstrap slirp4netns >/dev/null 2>&1 || fail 'install debootstrap and slirp4netns'

# The version before this one: test/containers/upgrade.test.ts replaces it.
PREVIOUS=88f323a

folder=${TEST_CONTAINERS_FOLDER:-$(mktemp -d /tmp/omp-containers.XXXXXX)}
cgroup=omp-containers-$$
mkdir -p "$folder/docker"
folder=$(realpath "$folder")
rm -rf "$folder"/{pid,sources,previous}

finish() {
  if [ -s "$folder/pid" ]; then
    kill -TERM "$(<"$folder/pid")" 2>/dev/null || true
    for _ in {1..150}; do kill -0 "$unshare" 2>/dev/null && sleep 0.1 || break; done
    kill -KILL "$(<"$folder/pid")" 2>/dev/null || true
    kill "$slirp" 2>/dev/null || true
    wait
  fi
  find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
  [ -n "${TEST_CONTAINERS_FOLDER-}" ] || rm -rf --one-file-system "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

# A command in a root file system. Its mounts end with its namespace.
inside() { # root, command...
  unshare --mount sh -ec 'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; exec chroot "$@"' - "$@"
}
in_engine() { nsenter -t "$(<"$folder/pid")" -m -n -p -- "$@"; }

if [ ! -e "$folder/debian/made" ]; then
  rm -rf --one-file-system "$folder"/{debian,engine}
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' | head -n 1)
  debootstrap --variant=minbase trixie "$folder/debian" "$mirror" >"$folder/log" || { tail "$folder/log" && exit 1; }
  touch "$folder/debian/made"
fi
if [ ! -e "$folder/engine/made" ]; then
  rm -rf --one-file-system "$folder/engine"
  cp -a "$folder/debian" "$folder/engine"
  cp -L /etc/resolv.conf "$folder/engine/etc/resolv.conf"
  # No service is started in there.
  printf '#!/bin/sh\nexit 101\n' >"$folder/engine/usr/sbin/policy-rc.d"
  chmod 755 "$folder/engine/usr/sbin/policy-rc.d"
  inside "$folder/engine" env -i PATH="$PATH" DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -ec '
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends docker.io docker-cli docker-compose docker-buildx' \
    >"$folder/log" 2>&1 || { tail "$folder/log" && exit 1; }
  # slirp4netns answers there.
  echo 'nameserver 10.0.2.3' >"$folder/engine/etc/resolv.conf"
  touch "$folder/engine/made"
fi

# As a clone that was made with umask 077, and with what is not committed yet.
mkdir "$folder"/{sources,previous}
git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - --verbatim-files-from -T - |
  (umask 077 && tar -xf - --no-same-permissions -C "$folder/sources")
git archive "$PREVIOUS" 2>/dev/null | tar -xf - -C "$folder/previous" || rmdir "$folder/previous"

unshare --mount --net --pid --ipc --uts --fork --kill-child \
  bash test/containers/engine.sh "$folder" "$cgroup" >"$folder/engine.log" 2>&1 </dev/null &
unshare=$!
for _ in {1..100}; do [ -s "$folder/pid" ] && break || sleep 0.1; done
slirp4netns --configure --mtu=65520 --disable-host-loopback "$(<"$folder/pid")" tap0 >"$folder/slirp.log" 2>&1 </dev/null &
slirp=$!
for _ in {1..200}; do in_engine docker info >/dev/null 2>&1 && break || sleep 0.3; done
in_engine docker version --format 'Docker {{.Server.Version}}' || { tail -n 30 "$folder/engine.log" && exit 1; }
in_engine docker image inspect local/debian >/dev/null 2>&1 ||
  tar -C "$folder/debian" --one-file-system --exclude='./var/lib/apt/lists/*' --exclude='./var/cache/apt/*' \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/locale/*' -c . | in_engine docker import - local/debian >/dev/null

# In the network of the engine, where the published ports are.
TEST_ENGINE="$(<"$folder/pid")" TEST_ENGINE_FOLDER=$folder nsenter -t "$(<"$folder/pid")" -n -- \
  npx vitest run --config vitest.containers.config.ts "$@"
