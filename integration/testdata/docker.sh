#!/usr/bin/env bash
# Runs in a container of container.sh's: an engine of its own, the images of the runtime,
# and then the script of a test: docker.sh SCRIPT. /opt/clove holds what
# integration/package/docker.sh staged, and base.tar.
set -eu
export DOCKER_HOST=unix:///run/docker/engine/sock DOCKER_BUILDKIT=0

# settle readies the world for engines: cgroup v2 gives no controller to the children of a
# group that holds processes, so these move one down.
settle() {
	local process processes
	mkdir /sys/fs/cgroup/world
	mapfile -t processes </sys/fs/cgroup/cgroup.procs
	for process in "${processes[@]}"; do echo "$process" >/sys/fs/cgroup/world/cgroup.procs; done
	echo '+cpu +cpuset +io +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
}

# engine NAME FLAGS... starts one, with its socket, log and data below /run/docker/NAME.
engine() {
	local dir=/run/docker/$1 pid
	shift
	mkdir -p "$dir"
	dockerd -H "unix://$dir/sock" --pidfile "$dir/pid" --data-root "$dir/data" --exec-root "$dir/exec" --userland-proxy=false \
		--add-runtime rights=/run/docker/rights "$@" >"$dir/log" 2>&1 &
	pid=$!
	# Whether it serves, only asking tells.
	for _ in $(seq 600); do
		if docker -H "unix://$dir/sock" version >/dev/null 2>&1; then return; fi
		kill -0 $pid
		sleep 0.1
	done
}
# shellcheck disable=SC2046 # pids, on purpose
trap 'kill $(jobs -p); wait || :' EXIT

# The engine gives --privileged every capability that the kernel knows, and runc fails
# where this machine's own root lacks one, as that of a container does. The runtime
# "rights" is runc, and asks for what root here has.
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

# What docs/docker.md gives a container.
CAPABILITIES='CHOWN DAC_OVERRIDE FOWNER KILL MKNOD NET_ADMIN NET_BIND_SERVICE SETGID SETPCAP SETUID SYS_ADMIN SYS_CHROOT SYS_NICE SYS_PTRACE'
FILTER='--security-opt seccomp=/opt/clove/seccomp.json'
LOOP='--device /dev/loop-control'

# granted ARGUMENTS runs a container with that, but without what $WITHOUT names.
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
