//go:build root

package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/api"
)

// secretValue is the secret of the tests. It begins with the prefix of its kind, and is nowhere else in the tree.
const secretValue = "ghp_Qx7tK2mW9sV4bN8cR1jL6hD3fG5pZ0aYuE"

// secretHost is a cloved on a host of the test network, whose server of api.example.com repeats what it gets, and notes what it got.
func secretHost(t *testing.T) (*cloved, *internet, func() []string) {
	t.Helper()
	d, n := askingHost(t)
	var mu sync.Mutex
	var got []string
	n.web.HandleFunc("/repos/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization") + " " + string(body)
		mu.Lock()
		got = append(got, text)
		mu.Unlock()
		_, _ = io.WriteString(w, text+"\n")
	})
	return d, n, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// keeps sets a secret of root's.
func (d *cloved) keeps(name string, flags ...string) {
	d.t.Helper()
	ca := filepath.Join(d.t.TempDir(), "ca.pem")
	value := filepath.Join(d.t.TempDir(), "value")
	if err := os.WriteFile(ca, trust().pem, 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(value, []byte(secretValue+"\n"), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.ok(append(append([]string{"secret", "set", "--host", "api.example.com", "--ca", ca, "--from-file", value}, flags...), name)...)
}

// A program sends a placeholder, the server gets the secret, and what it repeats comes back without it. The control is the same request
// to a host for which the secret is not: that gets the placeholder.
func TestAProgramUsesASecretThatItNeverHas(t *testing.T) {
	d, _, got := secretHost(t)
	d.keeps("TOKEN")
	out := d.ok("run", "--name", "uses", "--allow", "api.example.com", "--secret", "TOKEN:env=API_TOKEN", "--", "sh", "-c",
		`echo "placeholder $API_TOKEN"; curl -sS -m 20 -H "Authorization: Bearer $API_TOKEN" https://api.example.com/repos/acme`)
	if all := got(); len(all) != 1 || all[0] != "GET /repos/acme Bearer "+secretValue+" " {
		t.Errorf("the server got %q", all)
	}
	if strings.Contains(out, secretValue) || !strings.Contains(out, "placeholder cloveplaceholder") || !strings.Contains(out, "GET /repos/acme Bearer ****") {
		t.Errorf("%s", out)
	}
	if record := d.inspect("uses").Record; len(record.Denials) != 0 {
		t.Errorf("%+v", record.Denials)
	}
	var uses []api.SecretUse
	if err := json.Unmarshal([]byte(d.ok("secret", "uses", "--json")), &uses); err != nil || len(uses) != 1 || uses[0].Path != "/repos/acme" || uses[0].Host != "api.example.com:443" {
		t.Errorf("%+v, %v", uses, err)
	}
	if listed := d.ok("secret", "list"); !strings.Contains(listed, "TOKEN") || !strings.Contains(listed, "api.example.com") || strings.Contains(listed, secretValue) {
		t.Errorf("%s", listed)
	}
}
