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
