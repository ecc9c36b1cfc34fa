//go:build root

package engines

// The rows of this file are for both Docker and Podman. Their preludes define
//
//	engine   the engine's client
//	run      a container in the foreground, removed at its end, without network in Podman's
//	up       a container in the background that has said "up", named $N

// sharedRuns test how a command ends.
var sharedRuns = []row{
	{name: "streams", script: `echo in | run -i $I sh -c 'cat; echo err >&2' 2>/tmp/$N; cat /tmp/$N`, want: `in\nerr`},
	{name: "exit statuses", want: `0 7 143 126 127`, script: `
		for c in 'true' 'exit 7' 'trap "exit 143" TERM; kill $$'; do run $I sh -c "$c"; echo -n "$? "; done
		run $I /etc/plain 2>/dev/null; echo -n "$? "; run $I absent 2>/dev/null; echo $?`},
	{name: "a terminal", script: `run -t $I sh -c 'tty; test -t 0 && test -t 1 && echo both' | tr -d '\r'`, want: `(/dev/console|/dev/pts/0)\nboth`},
	{name: "user, workdir, environment, hostname", want: `1000\n1000\n/srv b here`, script: `
		run -u mallory -w /srv -e A=b -h here $I sh -c 'id -u; id -g; echo $PWD $A $(hostname)'`},
	{name: "logs", script: `run -d --rm=false --name $N $I sh -c 'echo out; echo err >&2' >/dev/null; engine wait $N; engine logs $N 2>/dev/null; engine logs $N 2>&1 >/dev/null`, want: `0\nout\nerr`},
	{name: "volumes", want: `kept\nkept\n1\nhost\n1\ntmpfs`, script: `
		engine volume create $N-v >/dev/null; run -v $N-v:/v $I sh -c 'echo kept >/v/f; cat /v/f'
		run -v $N-v:/v:ro $I sh -c 'cat /v/f; touch /v/g 2>/dev/null; echo $?'; engine volume rm $N-v >/dev/null
		mkdir -p /run/$N; echo host >/run/$N/f; run -v /run/$N:/h:ro $I sh -c 'cat /h/f; touch /h/f 2>/dev/null; echo $?'
		run --tmpfs /t $I mount | grep -o 'tmpfs on /t ' | cut -d' ' -f1`},
	{name: "read-only", script: `run --read-only $I touch /srv/x 2>/dev/null; echo $?; run $I touch /srv/x; echo $?`, want: `1\n0`},
}

// sharedLives test what can be done with a running container.
var sharedLives = []row{
	{name: "exec", cgroup: true, want: `in 5 1000 /srv b\ndetached`, script: `
		up $I obey
		engine exec $N sh -c 'echo -n "in "; exit 5'; echo -n "$? "
		engine exec -u mallory -w /srv -e A=b $N sh -c 'echo $(id -u) $PWD $A'
		engine exec -d $N sh -c 'echo detached >/proc/1/fd/1' >/dev/null; grep -om1 detached < <(engine logs -f $N)`},
	// Docker's exec returns 126 for both.
	{name: "exec of what is no program", script: `up $I obey; for c in /etc/plain absent; do engine exec $N $c >/dev/null 2>&1; echo -n "$? "; done`, want: `126 12[67]`},
	{name: "exec with a terminal", script: `up $I obey; engine exec -t $N sh -c 'tty; exit 4' | tr -d '\r'; echo ${PIPESTATUS[0]}`, want: `/dev/pts/[01]\n4`},
	{name: "exec reads", script: `up $I obey; echo word | engine exec -i $N cat`, want: `word`},
	{name: "stop", cgroup: true, script: `up $I obey; engine stop $N >/dev/null; engine logs $N; engine wait $N`, want: `up\ngot TERM\n3`},
	{name: "stop of one that does not listen", script: `up $I stubborn; engine stop -t 1 $N >/dev/null 2>&1; engine wait $N`, want: `137`},
	{name: "kill", script: `up $I obey; engine kill -s USR1 $N >/dev/null; grep -om1 'got USR1' < <(engine logs -f $N); engine kill $N >/dev/null; engine wait $N`, want: `got USR1\n137`},
	{name: "pause", cgroup: true, want: `paused\nrunning\nstill`, script: `
		up $I obey; engine pause $N >/dev/null; engine inspect -f '{{.State.Status}}' $N
		engine unpause $N >/dev/null; engine inspect -f '{{.State.Status}}' $N; engine exec $N echo still`},
	{name: "remove by force", script: `up $I stubborn; engine rm -f $N >/dev/null 2>&1; engine ps -aq --filter name=$N | wc -l`, want: `0`},
}

// sharedLimits: each limit is enforced or visible inside, and without it the same command
// passes or prints something else; the row of the cgroup's files only shows the numbers. A
// pids limit must leave room for the threads of the runtime's first steps in the container.
var sharedLimits = []row{
	{name: "memory", cgroup: true, script: `run -m 32m --memory-swap 32m $I eat; echo -n "$? "; run -m 256m $I eat; echo -n "$? "; run $I eat; echo $?`, want: `137 0 0`},
	{name: "pids", cgroup: true, script: `run --pids-limit 20 $I forks; echo -n "$? "; run $I forks`, want: `2 forked all`},
	{name: "files of the cgroup", cgroup: true, want: `67108864\n(50000|50000 100000)\n29`, script: `
		run -m 64m --cpus 0.5 --pids-limit 29 $I sh -c 'limit memory/memory.limit_in_bytes memory.max; limit cpu/cpu.cfs_quota_us cpu.max; limit pids/pids.max pids.max'`},
	{name: "update", cgroup: true, want: `0 268435456\n33554432\n137`, script: `
		up -m 256m --memory-swap 256m $I obey; engine exec $N eat; echo -n "$? "; engine exec $N limit memory/memory.limit_in_bytes memory.max
		engine update -m 32m --memory-swap 32m $N >/dev/null; engine exec $N limit memory/memory.limit_in_bytes memory.max; engine exec $N eat; echo $?`},
	// If only one of the two is given, Podman sets the other, which a root without
	// CAP_SYS_RESOURCE may not raise.
	{name: "ulimit", want: `77\n88\nfree`, script: `
		run --ulimit nofile=77:88 --ulimit nproc=4096:4096 $I sh -c 'ulimit -n; ulimit -Hn'
		run $I sh -c 'test $(ulimit -n) -gt 88 && echo free'`},
	// A host with one CPU prints the same twice.
	{name: "cpuset", want: `Cpus_allowed_list:\s+0\nthe host's`, script: `
		run --cpuset-cpus 0 $I grep Cpus_allowed_list /proc/self/status
		run $I grep Cpus_allowed_list /proc/self/status | cmp - <(grep Cpus_allowed_list /proc/self/status) && echo "the host's"`},
}
