//go:build root && !vm

package engines

import "testing"

const podmanRuled = podmanPrelude + ruledPrelude + `
# Below version 5 a comma begins another annotation.
annotate() { local rule; flags=(); for rule in $1; do flags+=(--annotation "run.clove.${rule//,/ }"); done; }
trap 'podman rm -f -t 0 -v "$N-2" "$N" >/dev/null 2>&1; podman network rm $N-net >/dev/null 2>&1' EXIT
`

// TestRulesBelowPodman is TestRulesBelowDocker on Podman's bridge, with its own annotations.
func TestRulesBelowPodman(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		startPodman(t)
		want(t, `need cloved`, podmanRuled+`annotate network.mode=none; engine run --rm "${flags[@]}" $I echo ran 2>&1 | grep -oEm1 '^ran|need cloved'`, "R=clove")
		startRuled(t)
		for _, rows := range [][]row{podmanRules, sharedRules} {
			try(t, podmanRuled, rows)
		}
	})
}

var podmanRules = []row{
	{name: "a network of its own", want: `I am 44.1.1.5\nI am 44.1.1.6\nserved`, clove: `I am 44.1.1.5\nno such name\nserved`, script: `
		podman network create $N-net >/dev/null; podman run -d --network $N-net --name $N-2 $I serve >/dev/null; grep -qm1 up < <(podman logs -f $N-2)
		to=$(podman inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' $N-2)
		ruled "network.mode=allowlist network.allow=allowed.test,$to" --network $N-net $I obey; tries allowed.test other.test $to`},
}
