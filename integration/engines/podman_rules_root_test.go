//go:build root

package engines

import "testing"

const podmanRuled = podmanPrelude + ruledPrelude + `
# Below version 5 a comma begins another annotation.
annotate() { local rule; flags=(); for rule in $1; do flags+=(--annotation "run.clove.${rule//,/ }"); done; }
trap 'podman rm -f -t 0 -v "$N-2" "$N" >/dev/null 2>&1; podman network rm $N-net >/dev/null 2>&1' EXIT
`

// TestRulesBelowPodman has the rules of TestDocker on Podman's bridges, which CNI makes before the
// runtime is called, and with Podman's own annotations.
func TestRulesBelowPodman(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		startPodman(t)
		tryRules(t, podmanRuled, `engine run --rm "${flags[@]}" $I`, podmanRules, sharedReaches, sharedRules)
	})
}

var podmanRules = []row{
	{name: "a network of its own", want: `I am 44.1.1.5\nI am 44.1.1.6\nserved`, clove: `I am 44.1.1.5\nno such name\nserved`, script: `
		podman network create $N-net >/dev/null; podman run -d --network $N-net --name $N-2 $I serve >/dev/null; grep -qm1 up < <(podman logs -f $N-2)
		to=$(podman inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' $N-2)
		ruled "network.mode=allowlist network.allow=allowed.test,$to" --network $N-net $I obey; tries allowed.test other.test $to`},
	// conmon starts it again by a call of Podman of its own.
	{name: "a restart policy", want: `I am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.5\nI am 44.1.1.6`, clove: `I am 44.1.1.5\ncut off\nI am 44.1.1.5\ncut off`, script: `
		annotate "network.mode=allowlist network.allow=$A"
		podman run -d --restart on-failure:1 --name $N "${flags[@]}" $I sh -c "reach $A; reach $B; exit 1" >/dev/null
		head -n 2 < <(podman events --since 1h --filter container=$N --filter event=died --format died) >/dev/null; podman wait $N >/dev/null; podman logs $N`},
	{name: "a deadline and a record in a pod", want: `0`, clove: `137\n"status":"timeout"`, script: `
		podman pod create --name $N-pod --infra-image clove.test/pause:1 --network none >/dev/null
		annotate "timeout=1s record=/var/lib/clove/records/$N.json"; podman run --pod $N-pod --name $N "${flags[@]}" $I sleep 3; echo $?
		podman rm $N >/dev/null; record; podman pod rm -f -t 0 $N-pod >/dev/null`},
	{name: "a comma", want: `must be formatted KEY=VALUE`, script: `podman run --rm --annotation run.clove.network.allow=a,b $I true 2>&1 | grep -o "must be formatted KEY=VALUE"`},
}
