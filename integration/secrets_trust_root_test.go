//go:build root

package integration

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// fetchWith has a program that reads only the distribution's file of authorities send a secret: no variable leads it there.
const fetchWith = `H="Authorization: Bearer $T"; echo "$H"; env -i PATH=/usr/bin:/bin wget -nv -T 20 -t 1 -O - --header "$H" https://api.example.com/repos/acme`

// rootWithAuthorities is a root with the machine's programs, and authorities of its own.
func rootWithAuthorities(t *testing.T, file string) (flags []string) {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { // the agent's root
		t.Fatal(err)
	}
	for _, dir := range []string{"etc", "usr", filepath.Dir(file)} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"bin", "lib", "lib64", "sbin"} {
		if err := os.Symlink("usr/"+link, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, file), trust().pem, 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"--rootfs", root, "-v", "/usr:/usr:ro"}
}

// wget reads the distribution's file of authorities and no variable. With a secret it works unchanged, in the machine's root and in another one,
// whose own authorities count there. The control is the same with another place for authorities.
func TestProgramsThatReadTheDistributionsAuthorities(t *testing.T) {
	testhost.Tool(t, "wget")
	d, n, got := secretHost(t)
	n.web.HandleFunc("www.example.com/", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "the other") })
	d.keeps("TOKEN")
	const other = `; env -i PATH=/usr/bin:/bin wget -nv -T 20 -t 1 -O - https://www.example.com/`
	bundle := "etc/ssl/certs/ca-certificates.crt"
	for name, c := range map[string]struct {
		flags []string
		other bool // it trusts the server's own authority
	}{
		"the machine's root": {nil, false},
		"another root":       {rootWithAuthorities(t, bundle), true},
	} {
		before := len(got())
		r := d.clove(append(append([]string{"run", "--allow", "*.example.com", "--secret", "TOKEN:env=T"}, c.flags...), "--", "sh", "-c", fetchWith+other)...)
		if all := got()[before:]; len(all) != 1 || all[0] != "GET /repos/acme Bearer "+secretValue+" " {
			t.Errorf("%s: the server got %q: %d, %s%s", name, all, r.code, r.stdout, r.stderr)
		}
		if strings.Contains(r.stdout, secretValue) || !strings.Contains(r.stdout, "Bearer cloveplaceholder") || !strings.Contains(r.stdout, "Bearer ****") {
			t.Errorf("%s: %s%s", name, r.stdout, r.stderr)
		}
		if strings.Contains(r.stdout, "the other") != c.other {
			t.Errorf("%s: its authorities are not the root's own: %s%s", name, r.stdout, r.stderr)
		}
	}
	before := len(got())
	r := d.clove("run", "--allow", "*.example.com", "--secret", "TOKEN:env=T", "--", "sh", "-c", strings.Replace(fetchWith, "wget", "wget --ca-directory=/usr/lib/ssl/misc", 1))
	if len(got()) != before || r.code == 0 {
		t.Errorf("control: %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// useToken is a client of an API that has its token in a variable: use URL.
func useToken(args []string) error {
	request, err := http.NewRequest(http.MethodGet, args[0], nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("T"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

// apiClients are unchanged programs that find their token in $T, and the API at $1.
var apiClients = map[string]string{
	"Python": `exec /usr/bin/python3 -c 'import os, sys, urllib.request
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer " + os.environ["T"]}), timeout=20).read().decode())' "$1"`,
	"Node": `exec node -e 'fetch(process.argv[1], {headers: {Authorization: "Bearer " + process.env.T}}).then(r => r.text()).then(console.log).catch(e => { console.error(e.cause); process.exit(1) })' "$1"`,
	"Go":   `exec /agent as-agent use "$1"`,
}

// Clients of an API in Python, Node and Go run as they are, and never have the secret. Where their own variable is taken from them, Node fails, and the record
// says why: it has authorities compiled in. The control for that is the others, which then read the distribution's file.
func TestClientsOfAnAPI(t *testing.T) {
	testhost.Tool(t, "node")
	d, _, got := secretHost(t)
	d.keeps("TOKEN")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(name, script string) result {
		args := []string{"run", "--name", name, "--memory", "1G", "--allow", "api.example.com", "--secret", "TOKEN:env=T", "-v", self + ":/agent:ro"}
		return d.clove(append(args, "--", "sh", "-c", script, "sh", "https://api.example.com/repos/acme")...)
	}
	for name, script := range apiClients {
		before := len(got())
		r := run(name, "env; "+script)
		if all := got()[before:]; r.code != 0 || len(all) != 1 || all[0] != "GET /repos/acme Bearer "+secretValue+" " {
			t.Errorf("%s: the server got %q: %d, %s%s", name, all, r.code, r.stdout, r.stderr)
		}
		if strings.Contains(r.stdout+r.stderr, secretValue) || !strings.Contains(r.stdout, "T=cloveplaceholder") || !strings.Contains(r.stdout, "Bearer ****") {
			t.Errorf("%s: %s%s", name, r.stdout, r.stderr)
		}
		if record := d.inspect(name).Record; len(record.Denials) != 0 {
			t.Errorf("%s: %+v", name, record.Denials)
		}

		before = len(got())
		r = run(name+"-unled", "unset SSL_CERT_FILE NODE_EXTRA_CA_CERTS; "+strings.ReplaceAll(script, "exec ", "")+"; s=$?; sleep 1; exit $s") // a run goes on
		if used := len(got()) > before; used != (name != "Node") {
			t.Errorf("%s without its variable: %v, %s%s", name, used, r.stdout, r.stderr)
		}
		if name != "Node" {
			continue
		}
		why := d.ok("why", name+"-unled")
		for _, says := range []string{"https://api.example.com:443", "has authorities compiled in", "docs/secrets.md"} {
			if !strings.Contains(why, says) || !strings.Contains(r.stderr, says) {
				t.Errorf("%s: no %q in %s, %s", name, says, r.stderr, why)
			}
		}
		if record := d.inspect(name + "-unled").Record; len(record.Denials) != 1 || record.Denials[0].Rule != "trust" {
			t.Errorf("%s: %+v", name, record.Denials)
		}
	}
}

// gh makes a request with a secret that it never has, to an enterprise host, which is what every host but GitHub's is to it. The control is gh without it.
func TestGHFindsItsSecret(t *testing.T) {
	testhost.Tool(t, "gh")
	d, n, _ := secretHost(t)
	d.keeps("TOKEN", "--request", "GET /api/v3/**", "--request", "POST /api/graphql")
	asked := make(chan string, 16)
	n.web.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization")
		if !strings.HasSuffix(r.Header.Get("Authorization"), " "+secretValue) {
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"login":"acme","data":{"viewer":{"login":"acme"}}}`)
	})
	gh := func(secret, script string) result {
		return d.clove("run", "--memory", "1G", "--allow", "api.example.com", "--secret", secret, "--", "sh", "-c", "env | grep ^GH_; "+script)
	}
	for script, request := range map[string]string{
		"gh api user --jq .login": "GET /api/v3/user",
		"gh api graphql -f query='{viewer{login}}' --jq .data.viewer.login": "POST /api/graphql",
	} {
		r := gh("TOKEN:gh", script)
		if r.code != 0 || !strings.HasSuffix(r.stdout, "\nacme\n") || !strings.Contains(r.stdout, "GH_ENTERPRISE_TOKEN=cloveplaceholder") || strings.Contains(r.stdout+r.stderr, secretValue) {
			t.Errorf("%s: %d, %s%s", script, r.code, r.stdout, r.stderr)
		}
		select {
		case got := <-asked:
			if got != request+" token "+secretValue {
				t.Errorf("%s: the server got %q", script, got)
			}
		default:
			t.Errorf("%s: the server got nothing", script)
		}
	}
	if r := gh("TOKEN:gh", "gh api -X DELETE repos/acme/x"); r.code == 0 || len(asked) != 0 || !strings.Contains(r.stdout+r.stderr, "no rule of a secret") {
		t.Errorf("without a rule: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := gh("TOKEN:env=OTHER", "GH_HOST=api.example.com gh api user"); r.code == 0 || len(asked) != 0 && !strings.HasSuffix(<-asked, "/user ") {
		t.Errorf("control: %d, %s%s", r.code, r.stdout, r.stderr)
	}
}
