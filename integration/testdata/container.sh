#!/usr/bin/env bash
# Runs a command as PID 1 of an environment like a privileged Docker container, without
# Docker: container.sh NAME SCRATCH BIN COMMAND...
#
# NAME is the container's cgroup, SCRATCH an empty directory, BIN is mounted at
# /opt/clove inside. The root is an overlay over this machine's, /dev has no
# nodes of loop devices, and the processes are in the cgroup namespace's root.
set -eu
stage=$1
case $stage in join | inside) shift ;; esac
arguments=("$@")
name=$1 scratch=$2 bin=$3
shift 3

# hierarchies prints "CONTROLLER DIRECTORY" for each mounted one, with this
# script's own directory in it.
hierarchies() {
	if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
		echo "v2 /sys/fs/cgroup"
		return
	fi
	local controllers path first
	while IFS=: read -r _ controllers path; do
		first=${controllers#name=}
		[ -z "$controllers" ] || echo "$controllers /sys/fs/cgroup/$first$path"
	done </proc/self/cgroup
}

# join already runs as PID 1: in a container, no process is in the cgroup without being
# in the pid namespace.
join() {
	local controller parent file
	while read -r controller parent; do
		if [ "$controller" = v2 ]; then
			for file in cpu cpuset io memory pids; do echo "+$file" >"$parent/cgroup.subtree_control"; done
		fi
		mkdir "$parent/$name"
		if [ "$controller" = cpuset ]; then
			for file in cpuset.cpus cpuset.mems; do cat "$parent/$file" >"$parent/$name/$file"; done
		fi
		echo 0 >"$parent/$name/cgroup.procs" # the writer itself
	done < <(hierarchies)
	exec unshare --mount --net --ipc --uts --cgroup "$0" inside "$name" "$scratch" "$bin" "$@"
}

# leave removes the cgroups, and waits until the kernel has removed the last process.
leave() {
	local dir try
	while read -r _ dir; do
		for try in $(seq 100); do
			find "$dir/$name" -depth -type d -exec rmdir {} + 2>/dev/null || true
			[ -d "$dir/$name" ] || break
			sleep 0.05
		done
		[ ! -d "$dir/$name" ] || echo "container.sh: $dir/$name stays after $try tries" >&2
	done < <(hierarchies)
}

inside() {
	mount -t tmpfs container "$scratch"
	mkdir "$scratch"/{upper,work,root}
	mount -t overlay container "$scratch/root" -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work"
	cd "$scratch/root"
	mount -t proc proc proc
	mount -t sysfs sysfs sys
	mount -t tmpfs tmpfs run
	mount -t tmpfs tmpfs dev
	local node
	for node in null zero full random urandom tty loop-control; do cp -a "/dev/$node" dev; done
	mkdir -p dev/pts dev/shm opt/clove .old
	mount -t tmpfs shm dev/shm
	mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666
	ln -s pts/ptmx dev/ptmx
	ln -s /proc/self/fd dev/fd
	mount --bind "$bin" opt/clove
	cgroups
	ip link set lo up
	pivot_root . .old
	umount -l /.old
	exec env -i PATH=/opt/clove:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CLOVE_ROOT=/srv/clove "$@"
}

cgroups() {
	local controller at
	if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
		mount -t cgroup2 cgroup sys/fs/cgroup
		return
	fi
	mount -t tmpfs tmpfs sys/fs/cgroup
	while read -r controller _; do
		at=sys/fs/cgroup/${controller#name=}
		mkdir -p "$at"
		case $controller in name=*) controller=none,$controller ;; esac
		mount -t cgroup cgroup "$at" -o "$controller"
	done < <(hierarchies)
}

case $stage in
join | inside) "$stage" "$@" ;;
*)
	(exec unshare --pid --fork --kill-child "$0" join "${arguments[@]}") && status=0 || status=$?
	leave
	exit "$status"
	;;
esac
