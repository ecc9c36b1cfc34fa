//go:build root

package integration

import (
	"fmt"
	"testing"

	"clove.run/clove/agent"
)

// A member's run is recorded under the policy that it names only if it allows no more than that.
// The first specification goes directly to the socket: no command line builds it.
func TestTheLabelOfAPolicyIsChecked(t *testing.T) {
	d := newClovedFor(t, groupName)
	member := func(name string, flags ...string) {
		t.Helper()
		if r := d.member().clove(append(append([]string{"run", "-d", "--name", name}, flags...), "--", "sleep", "1000")...); r.code != 0 {
			t.Fatalf("%s: %s", name, r.stderr)
		}
	}
	const spec = `{"name":%q,"command":["/bin/sleep","1000"],"dir":"/","user":{"name":"agent","uid":1000,"gid":1000,"home":"/"},"network":"none",` +
		`"egress":{"limits":{"connections":1,"per_second":1}},"limits":{"memory_bytes":1073741824,"memory_swap_bytes":1073741824,"pids":512,"stop_grace_ns":1,` +
		`"disk_bytes":67108864,"shm_bytes":1048576,"rlimits":[{"name":"nofile","soft":64,"hard":64}]},"files":{},"seccomp":{"profile":"standard"},` +
		`"policy":{"name":"minimal","sha256":"%064d","widened":["nothing"],"claimed":"strict"}}`
	d.raw(memberUID, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"run.start","params":{"spec":`+spec+"}}\n", "forged", 0))
	member("control", "--policy", "minimal")
	member("less", "--policy", "minimal", "--memory", "64M")
	member("more", "--policy", "minimal", "--memory", "1G")
	member("updated", "--policy", "minimal")
	d.ok("update", "--memory", "1G", members("updated"))
	// cloved opens no path of a policy, root's neither.
	d.detach("own", "sleep 1000", "--policy", policyFile(t, "web", "limits: {memory: 64M}\n"), "--policy-shadow", policyFile(t, "strict", "limits: {memory: 32M}\n"))
	for name, want := range map[string]string{
		members("forged"): "custom (minimal)", members("control"): "minimal", members("less"): "minimal", members("more"): "custom (minimal)",
		members("updated"): "custom (minimal)", "own": "custom (web)",
	} {
		d.ok("stop", "-t", "0", name)
		run := d.inspect(name)
		for place, got := range map[string]agent.Policy{"spec": run.Spec.Policy, "record": run.Record.Policy} {
			if custom := got.Name == agent.PolicyCustom; got.String() != want || (len(got.SHA256) == 64) == custom || len(got.Widened) > 0 {
				t.Errorf("%s: the %s says %s, %+v; want %s", name, place, got, got, want)
			}
		}
		if name == "own" && run.Record.Shadow.Policy.String() != "custom (strict)" {
			t.Errorf("its shadow: %+v", run.Record.Shadow.Policy)
		}
	}
}
