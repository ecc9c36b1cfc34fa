#!/usr/bin/env bash
# Runs in a container of container.sh's: an engine of its own, the images of the runtime,
# and then the script of a test: docker.sh SCRIPT. /opt/clove holds what
# integration/package/docker.sh staged, and base.tar.
set -eu
export DOCKER_HOST=unix:///run/docker/sock DOCKER_BUILDKIT=0
mkdir -p /run/docker
# Whether it serves, only asking tells.
dockerd -H "$DOCKER_HOST" --pidfile /run/docker/pid --data-root /run/docker/data --exec-root /run/docker/exec \
	--userland-proxy=false >/run/docker/log 2>&1 &
engine=$!
trap 'kill $engine; wait $engine || :' EXIT
for _ in $(seq 600); do
	if docker version >/dev/null 2>&1; then break; fi
	kill -0 $engine
	sleep 0.1
done
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
