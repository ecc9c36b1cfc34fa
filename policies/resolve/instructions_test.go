package resolve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/policies/host"
)

// Instructions are a text of the manifest, or those of a file beside it: the digest is the same, and
// changes with the file.
func TestInstructionsAreAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	load := func(key string) (m *Manifest, digest string) {
		t.Helper()
		write("agent.yaml", "version: 1\nname: helper\nmodel: echo\n"+key+"\n")
		h := host.Host{Dir: dir}
		m, err := LoadManifest("agent.yaml", h)
		if err == nil {
			digest, err = m.Digest(h)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m, digest
	}
	write("prompt.md", "be brief\n")
	m, digest := load("instructions_file: prompt.md")
	if m.Instructions != "be brief\n" || !m.HoldsInstructions() {
		t.Errorf("%+v", m)
	}
	if _, same := load(`instructions: "be brief\n"`); same != digest {
		t.Errorf("as a text the digest is %s, as a file %s", same, digest)
	}
	write("prompt.md", "be long\n")
	for _, key := range []string{"instructions_file: prompt.md", "instructions: be brief\nmax_iterations: 9", "instructions: be brief\ncontext: 9000"} {
		if _, other := load(key); other == digest {
			t.Errorf("%s: the digest stays", key)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	if m, _ := load("instructions_file: link.md"); m.HoldsInstructions() {
		t.Error("a link out of the folder is not seen")
	}
}

// What is no text of a bounded size is refused with its place, and nothing is waited for.
func TestInstructionsAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"large": strings.Repeat("x", instructionsMost+1), "fits": strings.Repeat("x", instructionsMost), "empty": "", "zero": "a\x00b", "latin": "\xe9"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"instructions_file: fits":                  "", // the control
		"instructions_file: large":                 "line 4, column 20: instructions_file: cannot read large",
		"instructions_file: empty":                 "it is no text",
		"instructions_file: zero":                  "it is no text",
		"instructions_file: latin":                 "it is no text",
		"instructions_file: fifo":                  "is not a regular file",
		"instructions_file: .":                     "is not a regular file",
		"instructions_file: /dev/zero":             "is not a regular file",
		"instructions_file: gone":                  "no such file",
		"instructions: x\ninstructions_file: fits": "it has both",
		"max_iterations: -1":                       "is no number of iterations",
		"context: 5":                               "is no number of tokens",
	} {
		if err := os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte("version: 1\nname: helper\nmodel: echo\n"+key+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := LoadManifest("agent.yaml", host.Host{Dir: dir})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
