#!/usr/bin/env bash
# Runs a command in namespaces and cgroups of its own, so that root tests which look
# only at their own processes can run at the same time: worker.sh NAME COMMAND...
#
# The file system is the machine's, except for a /run of its own. Processes, mounts,
# networks (loopback is up) and cgroups of other workers are not visible: the
# residue check and the lock of testhost see this worker only. Loop devices are the
# machine's: testhost finds its own by the temporary folder in CLOVE_WORKER.
# PID 1 is this script, which reaps the command's orphans; when it ends, the kernel
# kills all others.
#
# It works on cgroup v1 and hybrid hosts. On cgroup v2 the children of a group with
# processes have no controllers, so there the lane runs on the machine itself, one test at a time.
set -eu
stage=$1
case $stage in join | inside) shift ;; esac
arguments=("$@")
name=$1
shift

# hierarchies prints "CONTROLLERS DIRECTORY" for each mounted hierarchy, with this
# script's own directory in it. The v2 hierarchy of a hybrid host is named unified.
hierarchies() {
	local controllers path first
	while IFS=: read -r _ controllers path; do
		first=${controllers#name=}
		echo "${controllers:-unified} /sys/fs/cgroup/${first:-unified}$path"
	done </proc/self/cgroup
}

# join already runs as PID 1: clove would take a process that is in the worker's cgroup
# but not in its pid namespace for a foreign one.
join() {
	local controllers parent file
	while read -r controllers parent; do
		mkdir "$parent/$name"
		if [ "$controllers" = cpuset ]; then
			for file in cpuset.cpus cpuset.mems; do cat "$parent/$file" >"$parent/$name/$file"; done
		fi
		echo 0 >"$parent/$name/cgroup.procs" # the writer itself
	done < <(hierarchies)
	exec unshare --mount --net --ipc --uts --cgroup "$0" inside "$name" "$@"
}

inside() {
	local controllers at status=0
	mount -t proc proc /proc
	local -a all
	mapfile -t all < <(hierarchies)
		# Covered mounts would stay in mountinfo, where programs take the first of two for the visible one.
	umount -R /sys
	mount -t sysfs sysfs /sys
	mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
	for controllers in "${all[@]}"; do
		controllers=${controllers%% *}
		at=/sys/fs/cgroup/${controllers#name=}
		mkdir -p "$at"
		case $controllers in
		unified) mount -t cgroup2 cgroup2 "$at" ;;
		name=*) mount -t cgroup cgroup "$at" -o "none,$controllers" ;;
		*) mount -t cgroup cgroup "$at" -o "$controllers" ;;
		esac
	done
	mount -t tmpfs -o mode=755 tmpfs /run
	ip link set lo up
	"$@" || status=$?
	exit "$status"
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
		[ ! -d "$dir/$name" ] || echo "worker.sh: $dir/$name stays after $try tries" >&2
	done < <(hierarchies)
}

case $stage in
join | inside) "$stage" "$@" ;;
*)
	TMPDIR=$(mktemp -d /tmp/wXXXX) # short, because paths of sockets below it have a limit
	chmod 1777 "$TMPDIR"
	export TMPDIR CLOVE_WORKER=$TMPDIR
	unshare --pid --fork --kill-child "$0" join "${arguments[@]}" <&0 &
	child=$!
		# unshare ignores TERM; the end of the namespaces ends it.
	trap 'kill -KILL "$child" 2>/dev/null || true; leave; rm -rf "$TMPDIR"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	wait "$child"
	;;
esac
