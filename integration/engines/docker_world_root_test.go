//go:build root

package engines

// dockerReaches tests what a container's network reaches and what it does not.
var dockerReaches = []row{
	{name: "bridge and none", cgroup: true, want: `served\n1\nlo`, script: `
		up $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; exec obey'
		to=$(docker inspect -f '{{.NetworkSettings.IPAddress}}' $N)
		run $I wget -qO- http://$to/page; run --network none $I sh -c "wget -qO- http://$to/page; echo \$?; ls /sys/class/net"`},
	{name: "a network of its own", want: `served\ncut off`, script: `
		docker network create $N-net >/dev/null
		up --network $N-net $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; exec obey'
		to=$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' $N)
		run --network $N-net $I wget -qO- http://$to/page; run $I sh -c "timeout 1 wget -qO- http://$to/page || echo cut off"
		docker rm -f $N >/dev/null; docker network rm $N-net >/dev/null`},
	{name: "a published port", want: `served`, script: `
		up -p 80 $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; exec obey'
		run $I wget -qO- http://$(docker inspect -f '{{.NetworkSettings.Gateway}}' $N):$(docker port $N 80 | sed -n '1s/.*://p')/page`},
	{name: "the host's network", want: `the same`, script: `
		[ $(run --network host $I stat -Lc %i /proc/self/ns/net) = $(stat -Lc %i /proc/self/ns/net) ] && echo the same`},
	{name: "the network of another container", want: `served`, script: `
		up --network none $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; exec obey'; run --network container:$N $I wget -qO- http://127.0.0.1/page`},
}

// dockerConfines tests what a container may do.
var dockerConfines = []row{
	{name: "capabilities", want: `CapInh:\s0+\nCapPrm:\s00000000a80425fb\nCapEff:\s00000000a80425fb\nCapBnd:\s00000000a80425fb\nCapAmb:\s0+\nCapEff:\s0000000000000400\nCapEff:\s0+`, script: `
		run $I grep Cap /proc/self/status; run --cap-drop ALL --cap-add NET_BIND_SERVICE $I grep CapEff /proc/self/status; run -u 1000 $I grep CapEff /proc/self/status`},
	{name: "seccomp and privileges", want: `Seccomp:\s2\nNoNewPrivs:\s1\nSeccomp:\s0`, script: `
		run $I grep Seccomp: /proc/self/status; run --security-opt no-new-privileges $I grep NoNewPrivs /proc/self/status
		run --security-opt seccomp=unconfined $I grep Seccomp: /proc/self/status`},
	{name: "masked and read-only", script: `run $I sh -c 'cat /proc/kcore | wc -c; ls /proc/scsi | wc -l; echo 1 >/proc/sys/kernel/hostname' 2>/dev/null; echo $?`, want: `0\n0\n1`},
	{name: "a capability more", want: `mounted\n(1|255)`, script: `
		run --cap-add SYS_ADMIN --security-opt apparmor=unconfined $I sh -c 'mount -t tmpfs x /srv && echo mounted'; run $I mount -t tmpfs x /srv 2>/dev/null; echo $?`},
	{name: "sysctl and device", want: `17\ncharacter special file 1,7`, script: `
		run --sysctl net.ipv4.ip_default_ttl=17 $I cat /proc/sys/net/ipv4/ip_default_ttl; run --device /dev/full:/dev/other $I stat -c '%F %t,%T' /dev/other`},
}
