package archtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// An agent may take its gate over. The gate decodes parameters of agents' methods, so these
// types are in it, with request.cancel, which it serves itself. Those of other methods are not:
// a type that cannot be decoded there cannot be attacked there.
func TestTheGateHasNoOtherParameters(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gate")
	build := exec.Command("go", "build", "-tags", tags, "-o", file, "./cmd/clove-gate")
	build.Dir = "../.."
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[reflect.Type]bool{reflect.TypeFor[api.CancelParams](): true}
	for _, m := range agents.All() {
		allowed[reflect.TypeOf(m.Params)] = true
		if !has(program, m.Params) {
			t.Errorf("the gate has no %T, which %s needs: the test does not see its types", m.Params, m.Name)
		}
	}
	for _, m := range methods.All() {
		if !allowed[reflect.TypeOf(m.Params)] && has(program, m.Params) {
			t.Errorf("the gate has %T, of %s", m.Params, m.Name)
		}
	}
}

// has reports whether a program has a type: its description has the name, as *api.StopParams,
// behind a byte with the length.
func has(program []byte, value any) bool {
	name := "*" + reflect.TypeOf(value).String()
	return bytes.Contains(program, append([]byte{byte(len(name))}, name...))
}
