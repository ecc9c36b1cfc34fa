//go:build root

package engines

// dockerLimits: each limit binds, and without it the same command passes.
var dockerLimits = []row{
	{name: "memory", script: `run -m 32m --memory-swap 32m $I eat; echo -n "$? "; run -m 256m $I eat; echo -n "$? "; run $I eat; echo $?`, want: `137 0 0`},
	{name: "an OOM kill is told", want: `oom\ntrue`, script: `
		up -m 32m --memory-swap 32m $I sh -c 'echo up; exec eat'
		event 1 oom; docker wait $N >/dev/null; docker inspect -f '{{.State.OOMKilled}}' $N`},
	{name: "pids", script: `run --pids-limit 8 $I forks; echo -n "$? "; run $I forks`, want: `2 forked all`},
	{name: "files of the cgroup", want: `67108864\n(50000|50000 100000)\n9`, script: `
		run -m 64m --cpus 0.5 --pids-limit 9 $I sh -c 'limit memory/memory.limit_in_bytes memory.max; limit cpu/cpu.cfs_quota_us cpu.max; limit pids/pids.max pids.max'`},
	{name: "update", want: `268435456\n33554432\n(20000|20000 100000)\n7`, script: `
		up -m 256m $I obey; docker exec $N limit memory/memory.limit_in_bytes memory.max
		docker update -m 32m --memory-swap 32m --cpus 0.2 --pids-limit 7 $N >/dev/null
		docker exec $N sh -c 'limit memory/memory.limit_in_bytes memory.max; limit cpu/cpu.cfs_quota_us cpu.max; limit pids/pids.max pids.max'`},
	{name: "an update binds", script: `up -m 256m --memory-swap 256m $I obey; docker exec $N eat; echo -n "$? "; docker update -m 32m --memory-swap 32m $N >/dev/null; docker exec $N eat; echo $?`, want: `0 137`},
	{name: "ulimit", script: `run --ulimit nofile=77:88 $I sh -c 'ulimit -n; ulimit -Hn'`, want: `77\n88`},
	{name: "cpuset", script: `run --cpuset-cpus 0 $I grep Cpus_allowed_list /proc/self/status`, want: `Cpus_allowed_list:\s+0`},
}

// dockerWorld is what a container sees and reaches.
var dockerWorld = []row{
	{name: "no network", script: `run --network none $I ls /sys/class/net; run --network none $I wget -q -O- http://172.17.0.1/; echo $?`, want: `lo\n1`},
	{name: "bridge", want: `served\n1`, script: `
		up $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; exec obey'
		to=$(docker inspect -f '{{.NetworkSettings.IPAddress}}' $N)
		run $I wget -qO- http://$to/page; run --network none $I wget -qO- http://$to/page; echo $?`},
	{name: "a network of its own", want: `served\n1`, script: `
		docker network create $N-net >/dev/null
		up --network $N-net $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; exec obey'
		to=$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' $N)
		run --network $N-net $I wget -qO- http://$to/page; run $I wget -T 1 -qO- http://$to/page; echo $?
		docker rm -f $N >/dev/null; docker network rm $N-net >/dev/null`},
	{name: "a published port", script: `
		up -p 127.0.0.1:8099:80 $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; exec obey'
		sysctl -qw net.ipv4.conf.all.route_localnet=1; curl -s http://127.0.0.1:8099/page`, want: `served`},
	{name: "another's network", script: `up --network none $I obey; docker exec $N ip link set lo alias mark 2>/dev/null; run --network container:$N $I ls /sys/class/net`, want: `lo`},
	{name: "volumes", want: `kept\n1\nhost\n1\ntmpfs`, script: `
		docker volume create $N-v >/dev/null; run -v $N-v:/v $I sh -c 'echo kept >/v/f'; run -v $N-v:/v:ro $I cat /v/f; run -v $N-v:/v:ro $I touch /v/g 2>/dev/null; echo $?
		mkdir -p /run/$N; echo host >/run/$N/f; run -v /run/$N:/h:ro $I cat /h/f; run -v /run/$N:/h:ro $I touch /h/f 2>/dev/null; echo $?
		run --tmpfs /t $I mount | grep -o 'tmpfs on /t ' | cut -d' ' -f1; docker volume rm $N-v >/dev/null`},
	{name: "read-only", script: `run --read-only $I touch /srv/x 2>/dev/null; echo $?; run $I touch /srv/x; echo $?`, want: `1\n0`},
	{name: "capabilities", script: `run $I grep Cap /proc/self/status; run --cap-drop ALL --cap-add NET_BIND_SERVICE $I grep CapEff /proc/self/status; run -u 1000 $I grep CapEff /proc/self/status`,
		want: `CapInh:\s0+\nCapPrm:\s00000000a80425fb\nCapEff:\s00000000a80425fb\nCapBnd:\s00000000a80425fb\nCapAmb:\s0+\nCapEff:\s0000000000000400\nCapEff:\s0+`},
	{name: "seccomp and privileges", want: `Seccomp:\s2\nNoNewPrivs:\s1\nSeccomp:\s0`, script: `
		run $I grep Seccomp: /proc/self/status; run --security-opt no-new-privileges $I grep NoNewPrivs /proc/self/status
		run --security-opt seccomp=unconfined $I grep Seccomp: /proc/self/status`},
	{name: "masked and read-only", script: `run $I sh -c 'cat /proc/kcore | wc -c; ls /proc/scsi | wc -l; echo 1 >/proc/sys/kernel/hostname' 2>/dev/null; echo $?`, want: `0\n0\n1`},
	{name: "privileged", script: `run --privileged $I sh -c 'mount -t tmpfs x /srv && echo mounted; grep CapEff /proc/self/status'`, want: `mounted\nCapEff:\s000001f[ef]ffffffff|mounted\nCapEff:\s000001fffeffffff`},
	{name: "sysctl and device", want: `17\nc 1,7`, script: `
		run --sysctl net.ipv4.ip_default_ttl=17 $I cat /proc/sys/net/ipv4/ip_default_ttl
		run --device /dev/full:/dev/other $I stat -c '%F %t,%T' /dev/other | sed 's/character special file/c/'`},
}
