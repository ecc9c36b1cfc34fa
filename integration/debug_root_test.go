//go:build root

package integration

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// debug makes a bundle and returns its files.
func (d *cloved) debug() map[string]string {
	d.t.Helper()
	path := filepath.Join(d.t.TempDir(), "bundle.tar.gz")
	d.ok("debug", "-o", path)
	file, err := os.Open(path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		d.t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(zipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			d.t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			d.t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = string(text)
	}
}

// A secret is put everywhere a user may put one, and no bundle contains it: while cloved runs,
// hangs, and is dead. The control: the store and the log contain it.
func TestDebugKeepsSecrets(t *testing.T) {
	d := newCloved(t)
	d.env = []string{"OTEL_RESOURCE_ATTRIBUTES=key=planted-environment"}
	d.settings = "# planted-comment\n"
	d.again()
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "key"), []byte("planted-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.detach("ended", "echo planted-output; exit 3 # planted-argument", "--env", "TOKEN=planted-value", "--label", "key=planted-label")
	d.clove("wait", "ended")
	d.detach("lives", "echo planted-output; python3 -c \"import socket; print(socket.getaddrinfo('planted-name.example', 80))\"; sleep 1000", "--env", "TOKEN=planted-value",
		"--network", "allowlist", "--allow", "192.0.2.1:1", "--workspace", workspace)
	d.detach("waits", "true planted-argument", "--delay", "1h", "--env", "TOKEN=planted-value")
	if text, err := os.ReadFile(filepath.Join(d.state, "clove.db")); err != nil || !strings.Contains(string(text), "planted-value") {
		t.Errorf("control: there is no secret in the store: %v", err)
	}
	if written := d.ok("logs", "ended"); !strings.Contains(written, "planted-output") {
		t.Errorf("control: there is no secret in the log: %q", written)
	}
	if shown := d.ok("debug", "store", "lives"); strings.Contains(shown, "planted") || !strings.Contains(shown, "TOKEN=(left out)") {
		t.Errorf("debug store shows %s", shown)
	}
	if shown := d.ok("debug", "store"); !strings.Contains(shown, "occurrences") {
		t.Error(shown)
	}
	d.bundles("alive", map[string]string{"cloved/goroutines.txt": "daemon.(*reconciler).run", "cloved/queue.txt": "waits since", "supervisors.txt": "supervisor.(*server).accept",
		"plans.txt": "overlay", "runs.json": "TOKEN=(left out)", "check.json": "[]", "cloved/log.txt": "msg=started", "cloved/process.txt": "open files",
		"cloved/metrics.txt": "clove_agents", "store.json": "occurrences", "history.json": "queued"})
	d.interrupt(unix.SIGSTOP)
	d.bundles("hanging", map[string]string{"README.txt": "MISSING: no answer in", "cloved/process.txt": "T (stopped)", "supervisors.txt": "supervisor.(*server).accept",
		"runs.json": "TOKEN=(left out)"})
	d.interrupt(unix.SIGCONT)
	d.stop(unix.SIGKILL)
	d.bundles("dead", map[string]string{"README.txt": "MISSING: cloved does not run", "cloved/process.txt": "is gone", "runs.json": "TOKEN=(left out)",
		"supervisors.txt": "supervisor.(*server).accept"})
	d.serve()
}

// interrupt sends the daemon a signal that does not end it.
func (d *cloved) interrupt(signal unix.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(signal); err != nil {
		d.t.Fatal(err)
	}
	// A signal is carried out when the process gets a processor.
	stopped := signal == unix.SIGSTOP
	for deadline := time.Now().Add(patience()); ; runtime.Gosched() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
		if err != nil || strings.Contains(string(text), "T (stopped)") == stopped {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("the daemon is not stopped: %t", stopped)
		}
	}
}

// bundles makes a bundle and checks what it must and must not contain.
func (d *cloved) bundles(when string, says map[string]string) {
	d.t.Helper()
	files := d.debug()
	for name, text := range says {
		if !strings.Contains(files[name], text) {
			d.t.Errorf("%s: %s has no %q: %.2000s", when, name, text, files[name])
		}
	}
	for name, text := range files {
		if at := strings.Index(text, "planted"); at >= 0 {
			d.t.Errorf("%s: %s has a secret: %s", when, name, text[max(0, at-60):min(len(text), at+60)])
		}
	}
}
