//go:build root

package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"clove.run/clove/api"
)

// A chain leads from what an agent appends to the request that started its run, and from the run down to what it
// appends, through the socket and cloved.
func TestTraceLeadsToTheStart(t *testing.T) {
	d := newCloved(t)
	out, err := d.shellIn(t.TempDir(), `set -e
clove run -d --name one --agent-socket -- sleep 1000 >run
clove exec one -- python3 -c '
import json, socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/clove/agent.sock"); f = s.makefile("rw")
def call(method, **params):
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=f, flush=True)
    return json.loads(f.readline())
first = call("event.append", kind="agent.plan")["result"]["id"]
print(call("event.append", kind="agent.step", causation=first)["result"]["id"])
' >id
sleep 1 # the request is in the log behind its answer
clove trace --json $(cat id)
clove trace --down --json $(cat run) | grep -c event.append | grep -qx 2
clove trace --down $(cat run) | grep -q '    event.append  agent.step'
clove rm -f one >/dev/null`)
	var result api.TraceResult
	if err != nil || json.Unmarshal([]byte(out), &result) != nil {
		t.Fatal(err, out)
	}
	var steps []string
	for _, s := range result.Steps {
		steps = append(steps, s.Method)
	}
	if got := strings.Join(steps, " "); got != "event.append event.append started run.start" || result.Truncated {
		t.Error(out)
	}
}
