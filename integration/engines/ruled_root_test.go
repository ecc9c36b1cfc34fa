//go:build root

package engines

import (
	"os"
	"testing"

	"clove.run/clove/internal/ocitest"
)

// startRuled prepares a world for agents' own rules: servers behind it, a name server of its
// own with the right answers, and a cloved.
func startRuled(t *testing.T) {
	t.Helper()
	t.Setenv("OUTSIDE", ocitest.JoinNetwork(t).Outside())
	if err := os.WriteFile("/etc/resolv.conf", []byte("nameserver "+ocitest.ServerAddress+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, "cloved")
}

// tryRules runs rows with a prelude that contains ruledPrelude, after the start of a container
// was refused because no cloved runs.
func tryRules(t *testing.T, prelude, run string, tables ...[]row) {
	t.Helper()
	want(t, `need cloved`, prelude+`annotate network.mode=none; `+run+` echo ran 2>&1 | grep -oEm1 '^ran|need cloved'`, "R=clove")
	startRuled(t)
	for _, rows := range tables {
		try(t, prelude, rows)
	}
}

// ruledPrelude is for rows of rules, after an engine's own prelude. That one defines also
//
//	annotate RULES   the engine's flags for annotations, in $flags; RULES without run.clove.
//
// A, B and S are what ocitest calls AllowedAddress, OtherAddress and ServerAddress.
const ruledPrelude = `
A=` + ocitest.AllowedAddress + ` B=` + ocitest.OtherAddress + ` S=` + ocitest.ServerAddress + `
ruled() { annotate "$1"; shift; engine run -d --name "$N" "${flags[@]}" "$@" >/dev/null && grep -qm1 up < <(engine logs -f "$N"); }
tries() { local to; for to; do engine exec $N reach $to; done; }
# visit is what a client beyond the host sees of the container's port 80.
visit() { nsenter --net=$OUTSIDE "$@" busybox wget -qO- http://` + ocitest.InsideAddress + `:$(engine port $N 80 | sed -n '1s/.*://p')/; }
# holders are how many processes hold $id's rules, or still do of those that did: a guard and its gate.
holders() {
	local state=$(find /run -path "*/$id/network.json" 2>/dev/null)
	[ ! "$state" ] || { guard=$(grep -oE '"pid": ?[1-9][0-9]*' $state | tr -dc 0-9); held="$guard $(pgrep -P $guard)"; }
	for pid in $held; do grep -aqs . /proc/$pid/cmdline && echo; done | wc -l
}
# record is written before the engine hears of the end.
record() { cat {$CLOVE_ROOT,/var/lib/clove}/records/$N.json 2>/dev/null | grep -oE '"status": ?"[a-z]+"' | tr -d ' '; }
`

// sharedReaches need only annotate, ruled, exec and logs of an engine. With runc, which
// ignores the rules, everything is reached.
var sharedReaches = []row{
	{name: "allowed by address", script: `ruled "network.mode=allowlist network.allow=$A" $I obey; tries $A $B allowed.test`,
		want: `I am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.5`, clove: `I am 44.1.1.5\ncut off\nno such name`},
	{name: "allowed by name", script: `ruled "network.mode=allowlist network.allow=allowed.test" $I obey; tries allowed.test other.test $B`,
		want: `I am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.6`, clove: `I am 44.1.1.5\nno such name\ncut off`},
	{name: "all but what is denied", script: `ruled "network.mode=public network.deny=other.test,$B" $I obey; tries $A allowed.test other.test $B $S`,
		want: `I am 44.1.1.5\nI am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.6\nI am 10.77.0.1`, clove: `I am 44.1.1.5\nI am 44.1.1.5\nno such name\ncut off\ncut off`},
	{name: "no network", script: `ruled network.mode=none $I obey; tries $A allowed.test`, want: `I am 44.1.1.5\nI am 44.1.1.5`, clove: `cut off\nno such name`},
	{name: "datagrams", want: `44.1.1.5\n44.1.1.5`, clove: `44.1.1.5\nnone`, script: `
		ruled "network.mode=allowlist network.allow=udp://$A:9999" $I obey
		for to in $A $B; do engine exec $N sh -c "nslookup -type=a allowed.test $to:9999 | grep -o '44.1.1.5$' || echo none" 2>/dev/null; done`},
	{name: "the first process, and one of another user", want: `I am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.6`, clove: `I am 44.1.1.5\ncut off\ncut off`, script: `
		ruled "network.mode=allowlist network.allow=$A" $I sh -c "reach $A; reach $B; exec obey"; engine logs $N | grep -v up; engine exec -u mallory $N reach $B`},
}

// sharedRules are for further features that Docker and Podman have.
var sharedRules = []row{
	{name: "a published port", script: `ruled network.mode=allowlist -p 80 $I serve; visit; tries $B`, want: `served\nI am 44.1.1.6`, clove: `served\ncut off`},
	// The control waits for as long as it needs; without a network there is no answer.
	{name: "a published port and no network", script: `ruled network.mode=none -p 80 $I serve; [ $R = runc ] && patience=50 || patience=1; visit timeout $patience || echo silence`, want: `served`, clove: `silence`},
	{name: "a restart", want: `I am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.5\nI am 44.1.1.6`, clove: `I am 44.1.1.5\ncut off\nI am 44.1.1.5\ncut off`, script: `
		ruled "network.mode=allowlist network.allow=$A" $I obey; tries $A $B; engine restart $N >/dev/null; tries $A $B`},
	{name: "nothing is left", want: `0\n0\n0\n0`, clove: `2\n0\n2\n0`, script: `
		ruled "network.mode=allowlist network.allow=$A" $I obey; id=$(engine inspect -f '{{.Id}}' $N); holders
		engine stop $N >/dev/null; until [ $(holders) = 0 ]; do sleep 0.1; done; echo 0
		engine start $N >/dev/null; holders; engine rm -f $N >/dev/null; until [ $(holders) = 0 ]; do sleep 0.1; done; find /run -path "*/$id*" | wc -l`},
	{name: "a deadline and a record", want: `0`, clove: `137\n"status":"timeout"`, script: `
		annotate "timeout=1s record=/var/lib/clove/records/$N.json"; engine run -d --name $N "${flags[@]}" $I sleep 3 >/dev/null; engine wait $N; engine rm $N >/dev/null; record`},
	{name: "a record of one that ends by itself", want: `7`, clove: `7\n"status":"exited"`, script: `
		annotate "timeout=1h record=/var/lib/clove/records/$N.json"; engine run --name $N "${flags[@]}" $I sh -c 'exit 7'; echo $?; engine rm $N >/dev/null; record`},
	{name: "what cannot be held is refused", want: `(ran\n?){5}`,
		clove: `(in the host's network|needs a network namespace)\nshares the host's pid namespace\nwould have CAP_SYS_ADMIN\nhold there already\nrun.clove.timeout`, script: `
		ruled network.mode=none $I obey; annotate network.mode=none
		for more in "--network host" "--pid host" "--cap-add SYS_ADMIN" "--network container:$N"; do
			engine run --rm --name $N-2 "${flags[@]}" $more $I echo ran 2>&1 | tee /dev/fd/2 | grep -oEm1 "^ran|in the host's network|needs a network namespace|shares the host's pid namespace|would have CAP_SYS_ADMIN|hold there already"; done
		annotate timeout=5; engine run --rm --name $N-2 "${flags[@]}" $I echo ran 2>&1 | grep -oEm1 '^ran|run.clove.timeout'`},
	{name: "a guest in a ruled network", want: `I am 44.1.1.5\nI am 44.1.1.6`, clove: `I am 44.1.1.5\ncut off`, script: `
		ruled "network.mode=allowlist network.allow=$A" $I obey; for to in $A $B; do engine run --rm --name $N-2 --network container:$N $I reach $to; done`},
	// Which name server resolves an allowed name: files that the container may have written do
	// not count.
	{name: "a name server of the container's own", want: `I am 44.1.1.6`, clove: `I am 44.1.1.5`, script: `
		ruled "network.mode=allowlist network.allow=allowed.test" --dns $B $I obey; tries allowed.test`},
	{name: "one of a read-only container's", want: `I am 44.1.1.6\nI am 44.1.1.6`, clove: `I am 44.1.1.6\nno such name`, script: `
		ruled "network.mode=allowlist network.allow=allowed.test" --read-only --dns $B $I obey; tries allowed.test other.test`},
	{name: "one that is mounted read-only", want: `I am 44.1.1.6\nI am 44.1.1.6`, clove: `I am 44.1.1.6\nno such name`, script: `
		echo "nameserver $B" >/run/$N.conf; ruled "network.mode=allowlist network.allow=allowed.test" -v /run/$N.conf:/etc/resolv.conf:ro $I obey; tries allowed.test other.test; rm /run/$N.conf`},
}
