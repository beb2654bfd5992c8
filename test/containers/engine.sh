#!/usr/bin/env bash
# Process 1 of the engine, in namespaces of its own, which run.sh makes: no process, mount, port or firewall rule of it is in
# those of the machine, and all of them end with this process.
set -euo pipefail
folder=$1 cgroup=$2
# /proc is still that of the machine.
read -r pid _ </proc/self/stat
echo "$pid" >"$folder/pid"

mount --bind "$folder/engine" "$folder/engine"
cd "$folder/engine"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mkdir -p var/lib/docker omp old-root
mount --bind "$folder" omp
mount --bind "$folder/docker" var/lib/docker
# With chroot instead, a command in a container would begin at the root of these mounts, outside its own.
pivot_root . old-root
cd /
umount -l old-root

trap 'kill "$dockerd"' TERM
dockerd --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent="/$cgroup" &
dockerd=$!
wait "$dockerd" || wait "$dockerd"
