package client

import (
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// Text that JSON would change is refused with the field's name, wherever it is. The controls are
// the texts that may have any bytes.
func TestTextThatJSONWouldChange(t *testing.T) {
	t.Parallel()
	user := &agent.User{Name: "\xff"}
	for field, params := range map[string]any{
		"run":            api.RunParams{Run: "\xff"},
		"exec.dir":       &api.ExecParams{Exec: agent.Exec{Dir: "\xff"}},
		"exec.user.name": &api.ExecParams{Exec: agent.Exec{User: user}},
		"spec.labels":    api.StartParams{Spec: agent.Spec{Labels: map[string]string{"a": "\xff"}}},
	} {
		if err := checkText("", reflect.ValueOf(params)); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, params := range []any{
		nil, api.Nothing{},
		api.ExecParams{Exec: agent.Exec{Command: agent.RawStrings{"\xff"}, Env: agent.RawStrings{"A=\xff"}}},
		api.CopyParams{Path: "/\xff"},
	} {
		if err := checkText("", reflect.ValueOf(params)); err != nil {
			t.Errorf("control: %v", err)
		}
	}
}
