#!/usr/bin/env bash
# Runs a command in namespaces and cgroups of its own, so that root tests which
# look only at what is their own can run beside each other: worker.sh NAME COMMAND...
#
# The file system is the machine's, but for a /run of its own. Processes, mounts,
# networks (loopback is up) and cgroups of other workers are not visible: the
# residue check and the lock of testhost see this worker alone. Loop devices are the
# machine's: CLOVE_WORKER names the temporary folder by which testhost knows its own.
# PID 1 is this script, which reaps what the command leaves; when it ends, the kernel
# kills the rest.
#
# It works on cgroup v1 and hybrid hosts. Below a v2 group that holds processes no
# controller can be had, so there the lane runs on the machine itself, one test at a time.
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

# join is PID 1 already: a process in the worker's cgroup that its pid namespace does
# not have would look like a stranger to clove.
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
	# Covered mounts would stay in mountinfo, where the first of two is taken for the seen one.
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

# leave removes the cgroups; the kernel may still be taking the last process out.
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
	TMPDIR=$(mktemp -d /tmp/wXXXX) # short, for what is below is the path of sockets
	chmod 1777 "$TMPDIR"
	export TMPDIR CLOVE_WORKER=$TMPDIR
	unshare --pid --fork --kill-child "$0" join "${arguments[@]}" <&0 &
	child=$!
	# unshare ignores TERM, and its end is that of the namespaces.
	trap 'kill -KILL "$child" 2>/dev/null || true; leave; rm -rf "$TMPDIR"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	wait "$child"
	;;
esac
