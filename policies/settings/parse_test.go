package settings

import (
	"testing"

	"clove.run/clove/agent"
)

func TestParseUser(t *testing.T) {
	for text, want := range map[string]agent.User{
		"agent":       {Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		"1000":        {Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"},
		"root":        {Name: "root", Home: "/root"},
		"0:0":         {Name: "root", Home: "/root"},
		"agent:root":  {Name: "agent", UID: 1000, GID: 0, Home: "/home/agent"},
		"1234":        {Name: "1234", UID: 1234, GID: 1234, Home: "/home/agent"},
		"1234:5":      {Name: "1234", UID: 1234, GID: 5, Home: "/home/agent"},
		"65532:65532": {Name: "65532", UID: 65532, GID: 65532, Home: "/home/agent"},
		"":            {}, "65533": {}, "-1": {}, "nobody": {}, "1:": {}, ":1": {}, "1:2:3": {}, "4294967296": {}, "0x10": {},
	} {
		got, err := ParseUser(text)
		if refused := want == (agent.User{}); (err != nil) != refused || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
