//go:build root

package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// An agent finds the targets that the command line and a policy opened in grant.check and
// grant.list, beside its grants. The control is a target that nothing opened.
func TestAnAgentKnowsItsNetwork(t *testing.T) {
	for name, row := range map[string]struct {
		flags  []string
		rule   string // of net:api.example.com
		listed string
	}{
		"--allow":   {[]string{"--allow=api.example.com"}, "api.example.com (--allow)", "net:api.example.com"},
		"--network": {[]string{"--network=public"}, "tcp://public:* (mode public)", "net:tcp://public:*"},
		"--model":   {[]string{"--allow=api.example.com", "--grant=model:echo"}, "api.example.com (--allow)", "model:echo"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHost(t).calls(append(row.flags, "--agent-socket")...)
			check := func(what string) (got api.GrantCheckResult) {
				if m := r.call(agents.GrantCheck.Name, `{"what":"`+what+`"}`); json.Unmarshal(m.Result, &got) != nil {
					t.Fatalf("%s", m.Error)
				}
				return got
			}
			if got := check("net:api.example.com:443"); !got.Allowed || got.Reason != "the network allows it: "+row.rule {
				t.Errorf("%+v", got)
			}
			if got := check("net:10.1.2.3:443"); got.Allowed {
				t.Errorf("control: %+v", got)
			}
			if list := string(r.call(agents.GrantList.Name, `{}`).Result); !strings.Contains(list, `"grant":"`+row.listed+`"`) {
				t.Errorf("%s", list)
			}
			r.wait()
		})
	}
}
