//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
)

// A run whose secret it could not use is refused with what is wrong, and nothing of it is there: in the foreground, in the background and
// through a manifest. The control is the same run with a secret that it can use; that of which the secret is gone by its start ends as a
// start that failed.
func TestARunWithAnUnusableSecretIsNotMade(t *testing.T) {
	d, _, _ := secretHost(t)
	d.keeps("GOOD")
	d.keeps("NPM", "--header", "X-Token")
	d.keeps("OLD", "--expires", "1s")
	time.Sleep(time.Second) // the clock of the expiry
	const allowed = "api.example.com"
	for _, row := range []struct{ secret, allow, want string }{
		{"NONE:env=T", allowed, "there is no secret"},
		{"OLD:env=T", allowed, "it expired at"},
		{"GOOD:env=T", "other.example.com", "add --allow api.example.com"},
		{"NPM:npm", allowed, "npm sends its token in the header Authorization"},
	} {
		manifest := filepath.Join(t.TempDir(), "manifest.yaml")
		text := "version: 1\nname: child\nextends: sandboxed\ncommand: [sleep, \"1\"]\nnetwork: {mode: allowlist, allow: [" + row.allow + "]}\nsecrets: [\"" + row.secret + "\"]\n"
		if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run := []string{"run", "--name", "unusable", "--allow", row.allow, "--secret", row.secret}
		for _, args := range [][]string{append(run, "--", "true"), append(run, "-d", "--", "true"), {"manifest", "add", manifest}} {
			r := d.clove(args...)
			if r.code == 0 || !strings.Contains(r.stderr, row.want) {
				t.Errorf("%q: %d %s", args, r.code, r.stderr)
			}
		}
		if ps := d.ok("ps", "-a"); strings.Contains(ps, "unusable") {
			t.Errorf("%s: %s", row.secret, ps)
		}
		if all := d.ok("manifest", "ls"); strings.Contains(all, "child") {
			t.Errorf("%s: %s", row.secret, all)
		}
	}
	for _, how := range [][]string{{}, {"-d"}} {
		d.ok(append(append([]string{"run", "--name", "usable" + strings.Join(how, "")}, how...), "--allow", allowed, "--secret", "GOOD:env=T", "--", "true")...)
	}
	if ps := d.ok("ps", "-a"); strings.Count(ps, "usable") != 2 {
		t.Errorf("control: %s", ps)
	}
	d.ok("run", "--name", "later", "-d", "--delay", "2s", "--allow", allowed, "--secret", "GOOD:env=T", "--", "true")
	d.ok("secret", "rm", "GOOD")
	until(t, "the start fails", func() bool { return strings.Contains(d.ok("ps", "-a"), "start-failed") })
}

// modelHost is a cloved with a provider at api.example.com, whose key is the secret OPENAI, and another at which the key is a file. It
// returns what the providers got as keys.
func modelHost(t *testing.T) (d *cloved, keys func() []string) {
	t.Helper()
	d, n := askingHost(t)
	got := make(chan string, 64)
	n.web.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Host + " " + r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"model":"theirs","choices":[{"message":{"role":"assistant","content":"ready %s"}}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, r.Header.Get("Authorization"))
	})
	dir, ca := t.TempDir(), filepath.Join(t.TempDir(), "ca.pem")
	text := `
providers:
  p: {family: openai, url: "https://api.example.com/v1", key: "secret:OPENAI", users: ["*"]}
  q: {family: openai, url: "https://www.example.com/v1", key: near, ca: ` + ca + `, users: ["*"]}
models:
  small: {targets: [{provider: p, model: theirs}], max_output: 100}
  other: {targets: [{provider: q, model: theirs}], max_output: 100}
`
	for path, text := range map[string]string{filepath.Join(dir, "models.yaml"): text, filepath.Join(dir, "near"): "sk-the-key-in-a-file\n", ca: string(trust().pem)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CLOVE_MODELS", filepath.Join(dir, "models.yaml")) // without cloved
	t.Setenv("CLOVE_SECRETS", dir)
	d.stop(unix.SIGTERM)
	d.settings += "models: " + filepath.Join(dir, "models.yaml") + "\nsecrets: " + dir + "\n"
	d.serve()
	return d, func() (all []string) {
		for {
			select {
			case one := <-got:
				all = append(all, one)
			default:
				return all
			}
		}
	}
}

// askModel is an agent that asks a model once, and says what came.
func askModel(model string) []string {
	return []string{"run", "--network", "none", "--model", model, "--", "sh", "-c",
		`curl -sS -m 30 -H 'Content-Type: application/json' -d '{"model":"` + model + `","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}' "$OPENAI_BASE_URL/chat/completions"`}
}

// A secret of root's is a provider's key: the provider gets it, what it repeats comes back without it, each call is a use, and another
// value or a removal holds for the next call. The controls are a key in a file, and the provider's own words of what it got.
func TestASecretIsTheKeyOfAProvider(t *testing.T) {
	d, keys := modelHost(t)
	call := func(model string) string { r := d.clove(askModel(model)...); return r.stdout + r.stderr }
	if out := call("small"); !strings.Contains(out, "the key of the provider p cannot be used: there is no secret") || len(keys()) != 0 {
		t.Errorf("without the secret: %s", out)
	}
	if out := call("other"); !strings.Contains(out, "ready Bearer [key]") || fmt.Sprint(keys()) != "[www.example.com Bearer sk-the-key-in-a-file]" {
		t.Errorf("control: %s", out)
	}
	d.keeps("OPENAI", "--uses", "3", "--request", "POST /v1/chat/completions")
	if out := call("small"); !strings.Contains(out, "ready Bearer [key]") || fmt.Sprint(keys()) != "[api.example.com Bearer "+secretValue+"]" {
		t.Errorf("with the secret: %s", out)
	}
	value := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(value, []byte("sk-another-value"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.ok("secret", "rotate", "--from-file", value, "OPENAI")
	if out := call("small"); fmt.Sprint(keys()) != "[api.example.com Bearer sk-another-value]" {
		t.Errorf("after a rotation: %s", out)
	}
	d.ok("models", "test", "small")
	if out := call("small"); !strings.Contains(out, "its 3 uses are used up") || len(keys()) != 1 {
		t.Errorf("used up: %s", out)
	}
	var uses []api.SecretUse
	if err := json.Unmarshal([]byte(d.ok("secret", "uses", "--json")), &uses); err != nil || len(uses) != 3 || uses[0].Run != "" || uses[1].Run == "" || uses[1].Host != "api.example.com:443" || uses[1].Method+uses[1].Path != "POST/v1/chat/completions" {
		t.Errorf("%+v", uses)
	}
	if out := d.ok("secret", "list"); !strings.Contains(out, "OPENAI") {
		t.Errorf("%s", out)
	}
	d.ok("secret", "rm", "OPENAI")
	d.keeps("OPENAI", "--request", "GET /v1/**")
	if out := call("small"); !strings.Contains(out, "the secret OPENAI is not for POST /v1/chat/completions") || len(keys()) != 0 {
		t.Errorf("for other requests: %s", out)
	}
	if r := d.clove("models", "test", "small"); r.code == 0 || !strings.Contains(r.stderr, "clove secret list") {
		t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
}

// Without cloved, a run of root's in the foreground uses root's secrets, as a program and as keys of models: each use is counted in cloved's
// file, which is open for the moment of it alone. While another process has that file, every use is refused. The control is the use before it.
func TestRootsSecretsWithoutCloved(t *testing.T) {
	d, _ := modelHost(t)
	d.keeps("OPENAI", "--uses", "5")
	d.stop(unix.SIGTERM)
	t.Setenv("CLOVE_SECRET_KEY", d.secretKey())
	curl := `curl -sS -m 20 -H "Authorization: Bearer $T" -d x https://api.example.com/v1/chat/completions`
	run := func(script string, flags ...string) result {
		return d.clove(append(append([]string{"run", "--rm", "--allow", "api.example.com", "--secret", "OPENAI:env=T"}, flags...), "--", "sh", "-c", script)...)
	}
	if r := run(curl); r.code != 0 || !strings.Contains(r.stdout, "ready Bearer ****") {
		t.Errorf("%+v", r)
	}
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--secret", "NONE:env=N"}, "there is no secret"},
		{[]string{"--ask", "secret"}, "cloved, which asks people about uses of secrets, does not run"},
	} {
		if r := run("true", append(row.flags, "--name", "unusable")...); r.code == 0 || !strings.Contains(r.stderr, row.want) {
			t.Errorf("%q: %+v", row.flags, r)
		}
	}
	if ps := d.ok("ps", "-a"); strings.Contains(ps, "unusable") {
		t.Errorf("%s", ps)
	}
	if r := d.clove(askModel("small")...); !strings.Contains(r.stdout, "ready Bearer [key]") {
		t.Errorf("%+v", r)
	}
	// cloved starts while the agent executes.
	goOn := filepath.Join(userDir(t, nil), "go")
	done := make(chan result, 1)
	go func() {
		done <- run(`until [ -e /opt/go/go ]; do sleep 0.1; done; `+curl, "-v", filepath.Dir(goOn)+":/opt/go:ro")
	}()
	until(t, "the agent executes", func() bool { return strings.Contains(d.ok("ps"), "running") })
	d.serve()
	if err := os.WriteFile(goOn, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := <-done; strings.Contains(r.stdout, "ready") || !strings.Contains(r.stdout, "another process has the secrets") {
		t.Errorf("beside cloved: %+v", r)
	}
	var uses []api.SecretUse
	if err := json.Unmarshal([]byte(d.ok("secret", "uses", "--json")), &uses); err != nil || len(uses) != 2 || uses[0].Path != "/v1/chat/completions" || uses[0].Run == "" {
		t.Errorf("%+v, %v", uses, err)
	}
}
