#!/usr/bin/env bash
# Runs inside a container of container.sh: starts an engine of its own, loads the images of
# the runtime, and runs the script of a test: docker.sh SCRIPT. /opt/clove contains what
# integration/package/docker.sh staged, and base.tar.
set -eu
export DOCKER_HOST=unix:///run/docker/engine/sock DOCKER_BUILDKIT=0

# settle prepares the container for engines: cgroup v2 gives no controller to the children of
# a group with processes, so these processes move into a child.
settle() {
	local process processes
	mkdir /sys/fs/cgroup/world
	mapfile -t processes </sys/fs/cgroup/cgroup.procs
	for process in "${processes[@]}"; do echo "$process" >/sys/fs/cgroup/world/cgroup.procs; done
	echo '+cpu +cpuset +io +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
}

# engine NAME FLAGS... starts an engine, with its socket, log and data below /run/docker/NAME.
engine() {
	local dir=/run/docker/$1 pid
	shift
	mkdir -p "$dir"
	dockerd -H "unix://$dir/sock" --pidfile "$dir/pid" --data-root "$dir/data" --exec-root "$dir/exec" --userland-proxy=false \
		--add-runtime rights=/run/docker/rights "$@" >"$dir/log" 2>&1 &
	pid=$!
		# Only a request shows whether it serves.
	for _ in $(seq 600); do
		if docker -H "unix://$dir/sock" version >/dev/null 2>&1; then return; fi
		kill -0 $pid
		sleep 0.1
	done
}
# shellcheck disable=SC2046 # pids, on purpose
trap 'kill $(jobs -p); wait || :' EXIT

# With --privileged the engine gives every capability that the kernel knows, and runc fails
# if this machine's own root lacks one, as root of a container does. The runtime
# "rights" is runc with the capabilities that root has here.
mkdir -p /run/docker
lacking=$(comm -23 <(setpriv --list-caps | sort) <(setpriv --dump | sed -n 's/^Capability bounding set: //p' | tr , '\n' | sort) |
	tr '[:lower:]' '[:upper:]' | paste -sd'|')
cat >/run/docker/rights <<EOF
#!/bin/sh
last=
for word; do
	[ "\$last" != --bundle ] || sed -i -E 's/,"CAP_($lacking)"//g; s/"CAP_($lacking)",//g' "\$word/config.json"
	last=\$word
done
exec runc "\$@"
EOF
chmod +x /run/docker/rights

[ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ] || settle
engine engine
docker import -c 'CMD ["bash"]' /opt/clove/base.tar debian:bookworm-slim >/dev/null
docker build -q -t clove:daemon --target daemon /opt/clove >/dev/null
docker build -q -t clove /opt/clove >/dev/null

# The privileges of docs/docker.md.
CAPABILITIES='CHOWN DAC_OVERRIDE FOWNER KILL MKNOD NET_ADMIN NET_BIND_SERVICE SETGID SETPCAP SETUID SYS_ADMIN SYS_CHROOT SYS_NICE SYS_PTRACE'
FILTER='--security-opt seccomp=/opt/clove/seccomp.json'
LOOP='--device /dev/loop-control'

# granted ARGUMENTS runs a container with these, but without what $WITHOUT names.
granted() {
	local name given=(--cap-drop ALL)
	for name in $CAPABILITIES; do [ "$name" = "${WITHOUT:-}" ] || given+=(--cap-add "$name"); done
	# shellcheck disable=SC2206 # words, on purpose
	[ "${WITHOUT:-}" = filter ] || given+=($FILTER)
	# shellcheck disable=SC2206
	[ "${WITHOUT:-}" = device ] || given+=($LOOP)
	[ "${WITHOUT:-}" = rule ] || given+=(--device-cgroup-rule 'b 7:* rw')
	docker run --security-opt apparmor=unconfined "${given[@]}" "$@"
}
set +e
eval "$1"
