package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// FuzzParams: any parameters are accepted or refused with an error of the API's set.
func FuzzParams(f *testing.F) {
	for i, seed := range []string{`{}`, `null`, `[]`, `{"run":"a"}`, `{"run":1}`, `{"run":"a","signal":9}`, `{"spec":{"limits":{"memory_bytes":1e99}}}`,
		`{"after":-1}`, `{"since":"yesterday"}`, `{"tail":99999999999999999999}`, `{"update":{"memory_bytes":null,"rules":[{}]}}`, `{"exec":{"command":["a"]},"size":{"rows":70000}}`} {
		f.Add(i, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, row int, text []byte) {
		m := methods.All()[uint(row)%uint(len(methods.All()))]
		into := reflect.New(reflect.TypeOf(m.Params))
		if err := api.DecodeParams(text, into.Interface()); err != nil {
			wantCode(t, err, api.CodeParams)
			return
		}
		if _, err := json.Marshal(into.Interface()); err != nil {
			t.Errorf("%s: read %q, and cannot write it: %v", m.Name, text, err)
		}
	})
}

// FuzzConfig: a configuration is used completely or refused with a reason.
func FuzzConfig(f *testing.F) {
	example, err := os.ReadFile("../docs/clove.yaml")
	must(f, err)
	f.Add(example)
	for _, seed := range []string{"", "group: a", "users: {runs: 1, disk: 9T}", "a: &a [*a]", "memory_share: .nan", "log_cap: 64K\n---\nlog_cap: 1T", "\x00", "? x"} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "clove.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		must(t, os.WriteFile(path, text, 0o600))
		c, err := LoadConfig(path)
		if err != nil {
			return
		}
		if c.LogCapBytes() < minLogCap || c.startsAtOnce() < 1 || c.memoryBytes() < 0 || c.Users.Runs < 0 {
			t.Errorf("%q is taken for %+v", text, c)
		}
	})
}
