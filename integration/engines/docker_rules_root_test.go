//go:build root

package engines

import (
	"os"
	"testing"
)

// annotator stands in for clove-oci if Docker lacks `run --annotation`, which came with
// version 24: it moves the container's variable RULES into the annotations of its bundle.
// Docker writes config.json on one line.
const annotator = `#!/bin/bash
for argument; do
	[ "${last-}" != --bundle ] || config=$argument/config.json
	last=$argument
done
if [ "${config-}" ] && rules=$(grep -o '"RULES=[^"]*"' "$config" | tr -d '"'); then
	for rule in ${rules#RULES=}; do all+=",\"run.clove.${rule%%=*}\":\"${rule#*=}\""; done
	sed -i "1s|^{|{\"annotations\":{${all#,}},|" "$config"
fi
exec /opt/clove/clove-oci "$@"
`

const dockerRuled = dockerPrelude + ruledPrelude + `
engine() { if [ "$1" = run ]; then shift; docker run --runtime "$R" "$@"; else docker "$@"; fi; }
annotate() { flags=(-e "RULES=$1"); }
# owned RULES … is ruled in a network of Docker's whose name server is Docker's own.
owned() { docker network create $N-net >/dev/null; ruled "$1" --network $N-net "${@:2}"; }
trap 'docker rm -f -v "$N" "$N-2" >/dev/null 2>&1; docker network rm $N-net >/dev/null 2>&1' EXIT
`

func writeAnnotator(t *testing.T) {
	t.Helper()
	if err := os.Mkdir("/run/annotator", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/run/annotator/clove-oci", []byte(annotator), 0o755); err != nil {
		t.Fatal(err)
	}
}

// dockerRulesHold: the rules of annotations for a container's network and time apply on
// Docker's bridges, beside the address translation rules that Docker adds to the container's
// namespace.
func dockerRulesHold(t *testing.T) {
	tryRules(t, dockerRuled, `engine run --rm "${flags[@]}" $I`, dockerRules, sharedReaches, sharedRules)
}

var dockerRules = []row{
	{name: "a network of its own by name", want: `nameserver 127.0.0.11\nI am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.6`, clove: `nameserver 127.0.0.11\nI am 44.1.1.5\nno such name\ncut off`, script: `
		owned "network.mode=allowlist network.allow=allowed.test" $I obey; docker exec $N grep nameserver /etc/resolv.conf; tries allowed.test other.test $B`},
	{name: "a network of its own by address", want: `I am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.5`, clove: `I am 44.1.1.5\ncut off\nno such name`, script: `
		owned "network.mode=allowlist network.allow=$A" $I obey; tries $A $B allowed.test`},
	{name: "a network of its own and none", want: `I am 44.1.1.5\nI am 44.1.1.5`, clove: `cut off\nno such name`, script: `
		owned network.mode=none $I obey; tries $A allowed.test`},
	// Docker's resolver knows the name, and is not queried.
	{name: "another container by name and address", want: `served\nserved\nI am 44.1.1.6`, clove: `no such name\nserved\ncut off`, script: `
		docker network create $N-net >/dev/null; docker run -d --runtime $R --network $N-net --network-alias peer.test --name $N-2 $I serve >/dev/null; grep -qm1 up < <(docker logs -f $N-2)
		to=$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' $N-2)
		ruled "network.mode=allowlist network.allow=$to,peer.test" --network $N-net $I obey; tries peer.test $to $B`},
	// The engine may still forbid what the rules allow: Docker drops the packets, and clove's
	// gate gives up.
	{name: "a network without a way out", want: `served\ncut off`, script: `
		docker network create --internal $N-net >/dev/null; docker run -d --runtime $R --network $N-net --name $N-2 $I serve >/dev/null; grep -qm1 up < <(docker logs -f $N-2)
		to=$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' $N-2)
		ruled "network.mode=allowlist network.allow=$to,$A" --network $N-net $I obey; tries $to
		[ $R = clove ] || bound="timeout 2"; docker exec $N $bound reach $A || echo cut off`},
	{name: "a network that is joined later", want: `served\nI am 44.1.1.5\nserved\nI am 44.1.1.5\nI am 44.1.1.6`, clove: `cut off\nI am 44.1.1.5\ncut off\nI am 44.1.1.5\nno such name`, script: `
		docker network create $N-net >/dev/null; docker run -d --runtime $R --network $N-net --name $N-2 $I serve >/dev/null; grep -qm1 up < <(docker logs -f $N-2)
		to=$(docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' $N-2)
		ruled "network.mode=allowlist network.allow=allowed.test" $I obey; docker network connect $N-net $N; tries $to allowed.test
		docker network disconnect bridge $N; tries $to allowed.test other.test`},
	{name: "a network of its own after a restart", want: `I am 44.1.1.5\nI am 44.1.1.6\nanother\nI am 44.1.1.5\nI am 44.1.1.6`, clove: `I am 44.1.1.5\nno such name\nanother\nI am 44.1.1.5\nno such name`, script: `
		space() { docker inspect -f '{{.NetworkSettings.SandboxID}}' $N; }
		owned "network.mode=allowlist network.allow=allowed.test" $I obey; tries allowed.test other.test; before=$(space)
		docker restart $N >/dev/null; [ $before != $(space) ] && echo another; tries allowed.test other.test`},
	{name: "a restart policy", want: `I am 44.1.1.5\nI am 44.1.1.6\nI am 44.1.1.5\nI am 44.1.1.6`, clove: `I am 44.1.1.5\ncut off\nI am 44.1.1.5\ncut off`, script: `
		annotate "network.mode=allowlist network.allow=$A"
		docker run -d --runtime $R --restart on-failure:1 --name $N "${flags[@]}" $I sh -c "reach $A; reach $B; exit 1" >/dev/null; event 2 die >/dev/null; docker wait $N >/dev/null; docker logs $N`},
	{name: "a published port of a network of its own", script: `owned network.mode=allowlist -p 80 $I serve; visit; tries $B`, want: `served\nI am 44.1.1.6`, clove: `served\ncut off`},
	{name: "the agent's own limit", want: `0 0`, clove: `137 0`, script: `
		annotate limits.memory=32M; run "${flags[@]}" $I eat; echo -n "$? "; run $I eat; echo $?`},
}
