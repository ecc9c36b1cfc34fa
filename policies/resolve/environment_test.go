package resolve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

func FuzzEnvFile(f *testing.F) {
	for _, seed := range []string{"A=1\n", "#\n\nB", "\ufeffA=1", "=x", "A B=1", "A=\x00", "\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "vars")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{}
		err := Request{Values: settings.Values{settings.EnvFile: {path}}}.EachVariable(host.Host{}, func(_, key, value string, _ bool) error { env[key] = value; return nil })
		if err != nil {
			return
		}
		for key, value := range env {
			if key == "" || strings.ContainsAny(key, "= \t\n\x00") || strings.ContainsAny(value, "\n\x00") {
				t.Errorf("%q gave %q=%q", text, key, value)
			}
		}
	})
}
