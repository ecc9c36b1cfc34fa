//go:build root

package integration

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/internal/testhost"
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

// A request that no rule allows, and a placeholder where no secret may be, are in the record, in why and on the terminal of the run. Over
// plain HTTP, and to another host, the placeholder leaves as it is.
func TestWhatASecretIsNotFor(t *testing.T) {
	d, n, got := secretHost(t)
	n.web.HandleFunc("other.example.com/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "other "+r.Header.Get("Authorization"))
	})
	d.keeps("TOKEN", "--request", "GET /repos/acme/**")
	r := d.clove("run", "--name", "refused", "--allow", "*.example.com", "--secret", "TOKEN:env=T", "--", "sh", "-c", `
		curl -sS -m 20 -X DELETE -H "Authorization: Bearer $T" https://api.example.com/repos/acme/x
		curl -sS -m 20 -H "X-Other: $T" https://api.example.com/repos/acme/x
		curl -sS -m 20 -H "Authorization: Bearer $T" http://api.example.com/repos/acme/plain`)
	all := got()
	if r.code != 0 || len(all) != 2 || !strings.Contains(all[1], "/plain Bearer cloveplaceholder") || strings.Contains(strings.Join(all, ""), secretValue) {
		t.Errorf("%d: the server got %q", r.code, all)
	}
	if !strings.Contains(r.stdout, `"reason":"rule"`) {
		t.Errorf("%s", r.stdout)
	}
	const refused, strayed = "DELETE https://api.example.com:443/repos/acme/x", "GET https://api.example.com:443/repos/acme/x"
	record := d.inspect("refused").Record
	for _, target := range []string{refused, strayed} {
		if !strings.Contains(r.stderr, target) || !strings.Contains(d.ok("why", "refused"), target) || !strings.Contains(fmt.Sprint(record.Denials), target) {
			t.Errorf("%s is not in %s, %s, %+v", target, r.stderr, d.ok("why", "refused"), record.Denials)
		}
	}
}

// writtenAs are the ways in which a secret is looked for: whole, encoded, and in pieces of 6 bytes behind the prefix of its kind.
func writtenAs(value string) (forms []string) {
	forms = []string{value, hex.EncodeToString([]byte(value))}
	for offset := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(" ", offset) + value))
		forms = append(forms, text[4:len(text)-8])
	}
	own := strings.TrimPrefix(value, "ghp_")
	for at := 0; at+6 <= len(own); at += 6 {
		forms = append(forms, own[at:at+6])
	}
	return forms
}

// below are a process and all that it or one of those has started.
func below(t *testing.T, top int) []int {
	t.Helper()
	all := []int{top}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for grown := true; grown; {
		grown = false
		for _, path := range stats {
			text, err := os.ReadFile(path)
			_, behind, found := strings.Cut(string(text), ") ")
			fields := strings.Fields(behind)
			if err != nil || !found || len(fields) < 2 {
				continue
			}
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			parent, _ := strconv.Atoi(fields[1])
			if slices.Contains(all, parent) && !slices.Contains(all, pid) {
				all, grown = append(all, pid), true
			}
		}
	}
	return all
}

// While a run uses a secret, and behind it, the secret is in one process of the run's, and in no file, record, event, log, metric,
// environment or command line, neither whole nor in pieces. A copy of the state without the key gives nothing. The controls: that one process, and a
// secret that is planted in each kind of place.
func TestASecretIsNowhere(t *testing.T) {
	d, _, got := secretHost(t)
	metrics := filepath.Join(d.run, "metrics.sock")
	d.stop(unix.SIGTERM)
	d.settings = "log_level: debug\nmetrics_socket: " + metrics + "\n"
	d.serve()
	d.keeps("TOKEN")
	d.detach("uses", `while :; do curl -sS -m 20 -H "Authorization: Bearer $T" https://api.example.com/repos/acme; sleep 0.2; done`, "--allow", "api.example.com", "--secret", "TOKEN:env=T")
	until(t, "the server has the secret", func() bool { return len(got()) > 2 && strings.Contains(got()[0], secretValue) })
	forms := writtenAs(secretValue)
	has := func(text string) bool {
		return slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) })
	}
	planted := exec.Command("sleep", "60")
	planted.Env = []string{"PLANTED=" + secretValue[10:16]}
	if err := planted.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = planted.Process.Kill(); _ = planted.Wait() }()
	for _, form := range forms {
		for _, path := range shownWith(t, form) {
			if path != fmt.Sprintf("/proc/%d/environ", planted.Process.Pid) {
				t.Errorf("%s is in %s", form, path)
			}
		}
	}
	if len(shownWith(t, secretValue[10:16])) == 0 {
		t.Error("control: what is planted in an environment is not found")
	}
	processes := map[string]int{}
	for _, pid := range below(t, d.inspect("uses").Lease.SupervisorPID) {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			continue // it has ended
		}
		name := strings.TrimSpace(string(comm))
		if name == "curl" || name == "sleep" {
			continue // it may end while it is read
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // one that has ended has none, and is missed below
		if name == "clove-swap" {
			for _, line := range []string{"\nCapEff:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n", "\nNSpid:\t" + strconv.Itoa(pid) + "\t1\n"} {
				if !strings.Contains(string(status), line) || strings.Contains(string(status), "\nUid:\t0\t") {
					t.Errorf("clove-swap has rights: no %q in %s", line, status)
				}
			}
		}
		if slices.ContainsFunc(forms, func(form string) bool { return inMemory(t, pid, form) }) {
			processes[name+" with"]++
		} else {
			processes[name]++
		}
	}
	if processes["clove-swap with"] != 1 || processes["clove-swap"] != 1 || processes["clove"] == 0 || processes["clove-gate"] != 1 || processes["sh"] == 0 {
		t.Errorf("%v", processes)
	}
	for name := range processes {
		if strings.HasSuffix(name, " with") && name != "clove-swap with" {
			t.Errorf("it is in the memory of %s", name)
		}
	}
	texts := map[string]string{"metrics": scrape(t, "unix", metrics, "?agents=1")}
	d.ok("stop", "uses")
	for name, line := range map[string]string{"output": "logs uses", "record": "inspect uses", "events": "events --once --json --since 1h", "audit": "audit tail", "list": "secret list --json", "uses": "secret uses --json", "why": "why uses", "show": "show uses"} {
		texts[name] = d.ok(strings.Fields(line)...)
	}
	texts["log"] = d.log()
	for name, text := range texts {
		if text == "" || has(text) {
			t.Errorf("the %s has it, or nothing:\n%.2000s", name, text)
		}
	}
	if !strings.Contains(texts["output"], "Bearer ****") || !strings.Contains(texts["audit"], "secret.use") {
		t.Errorf("control: %s%s", texts["output"], texts["audit"])
	}
	for _, dir := range []string{d.state, d.run} {
		for _, form := range forms {
			if found := filesWith(t, dir, form); len(found) > 0 {
				t.Errorf("%s is in %v", form, found)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(d.run, "planted"), []byte("x "+hex.EncodeToString([]byte(secretValue))), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(filesWith(t, d.run, forms[1])) != 1 {
		t.Error("control: what is planted in a file is not found")
	}
	_ = os.Remove(filepath.Join(d.run, "planted"))

	d.stop(unix.SIGTERM)
	if err := os.Rename(d.secretKey(), d.secretKey()+".away"); err != nil {
		t.Fatal(err)
	}
	d.serve()
	if r := d.clove("secret", "check"); r.code != 1 || !strings.Contains(r.stdout, "TOKEN: ") {
		t.Errorf("without the key: %s%s", r.stdout, r.stderr)
	}
	if r := d.clove("run", "--allow", "api.example.com", "--secret", "TOKEN:env=T", "--", "true"); r.code != 125 || !strings.Contains(r.stderr, "key of secrets") {
		t.Errorf("without the key: %d, %s", r.code, r.stderr)
	}
	d.stop(unix.SIGTERM)
	if err := os.Rename(d.secretKey()+".away", d.secretKey()); err != nil {
		t.Fatal(err)
	}
	d.serve()
	if out := d.ok("secret", "check"); !strings.Contains(out, "1 secrets can be used") {
		t.Errorf("control: %s", out)
	}
}

// A file with a placeholder is made at each start, also over one that an earlier start has left; a new value is used by the run that goes
// on.
func TestAPlaceholderInAFile(t *testing.T) {
	d, _, got := secretHost(t)
	d.keeps("TOKEN")
	const ask = `ls -l /home/agent/.config/token; cat /home/agent/.config/token; curl -sS -m 20 -H "Authorization: Bearer $(cat /home/agent/.config/token)" https://api.example.com/repos/acme; sleep 1000`
	d.detach("uses", ask, "--allow", "api.example.com", "--secret", "TOKEN:file=/home/agent/.config/token")
	until(t, "it is used", func() bool { return len(got()) == 1 })
	d.ok("restart", "uses")
	until(t, "it is used again", func() bool { return len(got()) == 2 })
	for _, text := range got() {
		if !strings.Contains(text, "Bearer "+secretValue) {
			t.Errorf("%s", text)
		}
	}
	if out := d.ok("logs", "uses"); !strings.Contains(out, "-rw-------") || strings.Contains(out, secretValue) {
		t.Errorf("%s", out)
	}
	const renewed = "ghp_another-value-of-the-same-secret"
	if r := d.cloveWith(renewed, "secret", "rotate", "TOKEN"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	d.ok("exec", "uses", "--", "sh", "-c", `curl -sS -m 20 -H "Authorization: Bearer $(cat /home/agent/.config/token)" https://api.example.com/repos/acme`)
	if all := got(); len(all) != 3 || !strings.Contains(all[2], "Bearer "+renewed) {
		t.Errorf("%q", all)
	}
	d.ok("stop", "uses")
}

// git pushes, npm publishes and pip installs with a secret that they find in their own way and never have. The control is the same without it.
func TestProgramsFindTheirSecrets(t *testing.T) {
	testhost.Tool(t, "npm")
	d, n, _ := secretHost(t)
	d.keeps("TOKEN")
	root := n.hasGit(t, "api.example.com/git/", "/git", "repo.git")
	published := make(chan string, 8)
	n.web.HandleFunc("PUT /demo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer "+secretValue {
			http.Error(w, `{"error":"no"}`, http.StatusUnauthorized)
			return
		}
		published <- string(body)
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	wheel := wheelOf(t)
	n.web.HandleFunc("/simple/demo/", func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name != "__token__" || password != secretValue {
			w.Header().Set("WWW-Authenticate", `Basic realm="index"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		if strings.HasSuffix(r.URL.Path, ".whl") {
			_, _ = w.Write(wheel)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<a href="demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>`)
	})
	const install = `/usr/bin/python3 -m pip install -q --disable-pip-version-check --no-deps --target /tmp/x demo && PYTHONPATH=/tmp/x /usr/bin/python3 -c 'import demo' && echo installed`
	const push = `cd && git init -q -b main r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git push -q https://api.example.com/git/repo.git main && echo pushed`
	const publish = `cd && mkdir p && cd p && echo '{"name":"demo","version":"1.0.0"}' >package.json && npm publish && echo published`
	for program, script := range map[string]string{"git": push, "npm": publish, "pip": install} {
		r := d.clove("run", "--memory", "1G", "--allow", "api.example.com", "--secret", "TOKEN:"+program, "--", "sh", "-c", script+"; env; cat ~/.gitconfig ~/.npmrc 2>/dev/null")
		if !strings.Contains(r.stdout, script[strings.LastIndex(script, " ")+1:]) || strings.Contains(r.stdout+r.stderr, secretValue) {
			t.Errorf("%s: %d, %s%s", program, r.code, r.stdout, r.stderr)
		}
	}
	if out, err := exec.Command("git", "-C", root+"/repo.git", "log", "--format=%s", "main").CombinedOutput(); string(out) != "first\n" {
		t.Errorf("%v: %s", err, out)
	}
	if len(published) != 1 || !strings.Contains(<-published, `"demo"`) {
		t.Error("nothing is published")
	}
	r := d.clove("run", "--allow", "api.example.com", "--secret", "TOKEN:env=T", "--", "sh", "-c", "export GIT_TERMINAL_PROMPT=0; "+push)
	if r.code == 0 || strings.Contains(r.stdout, "pushed") {
		t.Errorf("control: %s%s", r.stdout, r.stderr)
	}
}

// hasGit has a server of the test network keep an empty repository for the user of the secret, and returns the folder that it is in.
func (n *internet) hasGit(t *testing.T, at, prefix, name string) (root string) {
	t.Helper()
	root = t.TempDir()
	if out, err := exec.Command("git", "init", "-q", "--bare", "-b", "main", filepath.Join(root, name)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	backend := &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Root: prefix, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=agent"}}
	n.web.HandleFunc(at, func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != secretValue {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
	return root
}

// wheelOf is a package of Python's.
func wheelOf(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range map[string]string{
		"demo.py": "", "demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
		"demo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "demo-1.0.dist-info/RECORD": "demo.py,,\ndemo-1.0.dist-info/RECORD,,\n",
	} {
		file, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(file, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
