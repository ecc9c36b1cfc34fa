//go:build root

package engines

import (
	"os"
	"testing"
)

// ctrNetwork is a bridge with a route out, as an administrator would configure it for `ctr run
// --cni`.
const ctrNetwork = `{"cniVersion": "0.4.0", "name": "ctr", "plugins": [
	{"type": "bridge", "bridge": "ctr0", "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local",
		"routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "198.18.1.0/24"}]]}},
	{"type": "loopback"}]}`

// ctr makes no resolv.conf. $names is mounted as one with the options $how; with $how=no there
// is none.
const ctrRuled = ctrPrelude + ruledPrelude + `
names=/etc/resolv.conf how=rw
annotate() {
	local rule
	flags=(--cni)
	[ $how = no ] || flags+=(--mount "type=bind,src=$names,dst=/etc/resolv.conf,options=rbind:$how")
	for rule in $1; do flags+=(--annotation "run.clove.$rule"); done
}
ruled() {
	annotate "$1"
	ctr run -d --runc-binary $program --log-uri file:///tmp/$N.log "${flags[@]}" "$2" $N "${@:3}" && grep -qm1 up < <(tail -n +1 -F /tmp/$N.log 2>/dev/null)
}
engine() {
	if [ $1 = logs ]; then cat /tmp/$N.log; return; fi
	local user=; shift; if [ $1 = -u ]; then user="--user $2"; shift 2; fi
	ctr t exec --exec-id x$SRANDOM $user "$@"
}
`

// TestRulesBelowCtr: the rules of annotations apply in the namespace that CNI connects for ctr
// between create and start.
func TestRulesBelowCtr(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		startContainerd(t, "engines", "")
		// ctr uses the first file by name; Podman's package has installed one as well.
		if err := os.WriteFile("/etc/cni/net.d/10-ctr.conflist", []byte(ctrNetwork), 0o644); err != nil {
			t.Fatal(err)
		}
		tryRules(t, ctrRuled, `run "${flags[@]}" $I $N`, sharedReaches, ctrRules)
	})
}

var ctrRules = []row{
	{name: "what begins outside", want: `served\nI am 44.1.1.6`, clove: `served\ncut off`, script: `
		ruled network.mode=allowlist $I serve; to=$(engine exec $N ip -4 -o address show eth0 | grep -oE '198[.0-9]+' | head -n1); busybox wget -qO- http://$to/; tries $B`},
	{name: "nothing is left", want: `0\n0\n0`, clove: `2\n0\n0`, script: `
		ruled "network.mode=allowlist network.allow=$A" $I obey; id=$N; holders
		gone; until [ $(holders) = 0 ]; do sleep 0.1; done; holders; ctr c rm $N; find /run -path "*/$N*" | wc -l`},
	{name: "a deadline and a record", want: `0`, clove: `137\n"status":"timeout"`, script: `
		annotate "timeout=1s record=/var/lib/clove/records/$N.json"; run "${flags[@]}" $I $N sleep 3; echo $?; record`},
	{name: "a record of one that ends by itself", want: `7`, clove: `7\n"status":"exited"`, script: `
		annotate "timeout=1h record=/var/lib/clove/records/$N.json"; run "${flags[@]}" $I $N sh -c 'exit 7'; echo $?; record`},
	{name: "what cannot be held is refused", want: `(ran\n?){3}`, clove: `in the host's network\nwould have CAP_SYS_ADMIN\nrun.clove.timeout`, script: `
		refused() { run "$@" $I $N echo ran 2>&1 | tee /dev/fd/2 | grep -oEm1 "^ran|in the host's network|would have CAP_SYS_ADMIN|run.clove.timeout"; ctr c rm $N 2>/dev/null; }
		annotate network.mode=none; refused "${flags[@]:1}" --net-host; refused "${flags[@]}" --cap-add CAP_SYS_ADMIN; annotate timeout=5; refused "${flags[@]}"`},
	// Which name server resolves an allowed name.
	{name: "a file of name servers that may be written", want: `I am 44.1.1.6`, clove: `I am 44.1.1.5`, script: `
		names=/tmp/$N.conf; echo "nameserver $B" >$names; ruled "network.mode=allowlist network.allow=allowed.test" $I obey; tries allowed.test`},
	{name: "one that is mounted read-only", want: `I am 44.1.1.6\nI am 44.1.1.6`, clove: `I am 44.1.1.6\nno such name`, script: `
		names=/tmp/$N.conf how=ro; echo "nameserver $B" >$names; ruled "network.mode=allowlist network.allow=allowed.test" $I obey; tries allowed.test other.test`},
	// Without the file most programs query 127.0.0.1, which is the container's own.
	{name: "no file of name servers", want: `44.1.1.6`, clove: `44.1.1.5`, script: `
		how=no; ruled "network.mode=allowlist network.allow=allowed.test" $I obey; engine exec $N nslookup -type=a allowed.test $B | sed -n '/^Name:/,$s/^Address: //p'`},
}
