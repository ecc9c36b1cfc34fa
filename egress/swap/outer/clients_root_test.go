//go:build root

package outer

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
	"clove.run/clove/secrets"
)

// goClient is the variable that makes this test binary a client of the URL in it.
const goClient = "CLOVE_TEST_CLIENT"

func TestMain(m *testing.M) {
	url := os.Getenv(goClient)
	if url == "" {
		os.Exit(m.Run())
	}
	answer, err := http.Get(url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(os.Stdout, answer.Body)
}

// distribution is where this machine keeps authorities.
const distribution = "/etc/ssl/certs/ca-certificates.crt"

// clients are programs, with what leads them to an authority. docs/secrets.md has the table.
var clients = []struct {
	name, script string // of a shell; $1 is the URL
	reads        []string
	constrained  bool // it honours name constraints
}{
	{"curl", `exec curl -sS -m 20 "$1"`, []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", distribution}, true},
	{"wget", `exec wget -q -T 20 -t 1 -O - "$1"`, []string{distribution}, true},
	{"git", `exec git ls-remote "$1"`, []string{"GIT_SSL_CAINFO", distribution}, true},
	{"openssl", `h=${1#https://}; printf 'GET / HTTP/1.0\r\n\r\n' | openssl s_client -quiet -verify_quiet -verify_return_error -verify_hostname "${h%%:*}" -servername "${h%%:*}" -connect "${h%%/*}" -ign_eof`, []string{"SSL_CERT_FILE", distribution}, true},
	{"python3", `exec /usr/bin/python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read())' "$1"`, []string{"SSL_CERT_FILE", distribution}, true},
	{"pip", `exec /usr/bin/python3 -m pip download -q --disable-pip-version-check --no-cache-dir --no-deps --retries 0 --timeout 20 -d "$TMPDIR" -i "$1" demo`, []string{"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", distribution}, true},
	{"node", `exec node -e 'fetch(process.argv[1]).then(r => r.text()).then(console.log).catch(e => { console.error(e.cause); process.exit(1) })' "$1"`, []string{"NODE_EXTRA_CA_CERTS"}, true},
	{"go", goClient + `="$1" exec "$SELF"`, []string{"SSL_CERT_FILE", distribution}, true},
}

// Which variable, or file of the distribution, leads a program to the run's authority, and whether it believes that for a name outside of the
// constraints. The controls: led by
// all others, no program believes it, and led by any of its own each believes the name that it is for.
func TestProgramsThatBelieveTheAuthority(t *testing.T) {
	testhost.Root(t)
	const name, other = "api.example.com", "api.example.net"
	of, err := newAuthority([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	of.names = append(of.names, other) // as a process that was taken over would
	asked := make(chan string, 1000)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Host }))
	server.TLS = &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return of.certify(hello.ServerName) }}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	dir := t.TempDir()
	hosts, bundle := filepath.Join(dir, "hosts"), filepath.Join(dir, "ca.pem")
	for path, text := range map[string][]byte{hosts: []byte("127.0.0.1 " + name + " " + other + "\n"), bundle: of.pem()} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// believes reports whether a request came.
	believes := func(t *testing.T, script, host string, led ...string) bool {
		t.Helper()
		mounts := "mount --bind " + hosts + " /etc/hosts; "
		env := []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir, "SELF=" + self, "GIT_TERMINAL_PROMPT=0"}
		for _, by := range led {
			if by == distribution {
				mounts += "mount --bind " + bundle + " " + distribution + "; "
			} else {
				env = append(env, by+"="+bundle)
			}
		}
		cmd := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c", mounts+script, "sh", "https://"+host+":"+port+"/")
		cmd.Env, cmd.WaitDelay = env, time.Second
		said, err := cmd.CombinedOutput() // pip and git end with an error behind the answer, which is no repository
		select {
		case <-asked:
			for len(asked) > 0 {
				<-asked
			}
			return true
		default:
			t.Logf("%s by %v: %v, %.400s", host, led, err, said)
			return false
		}
	}
	all := append(slices.Clone(secrets.BundleVariables), secrets.AuthorityVariable, distribution)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "go" && c.name != "pip" {
				testhost.Tool(t, c.name)
			}
			others := slices.DeleteFunc(slices.Clone(all), func(by string) bool { return slices.Contains(c.reads, by) })
			if believes(t, c.script, name, others...) {
				t.Error("something else leads it to the authority")
			}
			for _, by := range c.reads {
				if !believes(t, c.script, name, by) {
					t.Errorf("%s does not lead it to the authority", by)
				}
			}
			if got := believes(t, c.script, other, all...); got == c.constrained {
				t.Errorf("a name outside of the constraints: %v", got)
			}
		})
	}
}
