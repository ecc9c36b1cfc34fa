//go:build root

package integration

import (
	"bufio"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

var listAll = api.ListParams{All: true, Brief: true}

// cloved is a daemon with a host of its own: no other process uses its directories and socket.
type cloved struct {
	*host
	cmd    *exec.Cmd
	socket string
	group  string
	// The following apply from the daemon's next start on.
	settings string       // lines of its configuration
	share    string       // memory_share; empty: 0
	env      []string     // besides the test's own environment
	said     atomic.Int64 // lines of its log
	lines    lockedText   // of its log
}

// newCloved starts a cloved and ends it, with all its agents, at the end of the test.
func newCloved(t *testing.T) *cloved {
	t.Helper()
	return newClovedIn(t, "")
}

// newClovedIn is newCloved with a run directory that is somewhere else.
func newClovedIn(t *testing.T, run string) *cloved {
	t.Helper()
	d := &cloved{host: newHost(t), group: "root"}
	d.run = cmp.Or(run, d.run)
	d.socket = filepath.Join(d.run, "clove.sock")
	d.serve()
	t.Cleanup(func() {
		d.clean()
		d.stop(unix.SIGTERM)
		os.Remove(d.socket) // left by a daemon that was killed
		os.Remove(filepath.Join(d.run, "models.sock"))
		os.RemoveAll(filepath.Join(d.run, "models")) // journals of processes that have ended
	})
	return d
}

// config is the daemon's configuration; its group has no member on this host.
func (d *cloved) config() string {
	path := filepath.Join(d.state, "clove.yaml")
	if err := os.MkdirAll(d.state, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("group: "+d.group+"\nmemory_share: "+cmp.Or(d.share, "0")+"\nsecret_key: "+d.secretKey()+"\n"+d.settings), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// secretKey is the file of the key of secrets. It is beside the state, and goes with the test.
func (d *cloved) secretKey() string { return filepath.Join(filepath.Dir(d.state), "secret.key") }

// inherited is a file that every cloved of the tests has open at its start.
const inherited = "/dev/full"

// serve starts the daemon and waits until it reports that it is ready.
func (d *cloved) serve() {
	d.t.Helper()
	d.cmd = exec.Command(filepath.Join(d.bin, "cloved"), "--root", d.state, "--run-dir", d.run, "--config", d.config())
	d.cmd.Env = append(os.Environ(), d.env...)
	witness, err := os.Open(inherited)
	if err != nil {
		d.t.Fatal(err)
	}
	defer witness.Close()
	d.cmd.ExtraFiles = []*os.File{witness}
	errs, err := d.cmd.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.begin(d.cmd); err != nil {
		d.t.Fatal(err)
	}
	ready := make(chan bool, 1)
	var last atomic.Value
	go func() {
		lines := bufio.NewScanner(errs)
		for lines.Scan() {
			d.said.Add(1)
			d.lines.add(lines.Text())
			last.Store(lines.Text())
			if strings.Contains(lines.Text(), "msg=ready") {
				ready <- true
			}
		}
		close(ready)
	}()
	select {
	case ok := <-ready:
		if !ok {
			d.t.Fatalf("cloved ended before it was ready: %v", last.Load())
		}
	case <-time.After(patience()):
		d.t.Fatal("cloved is not ready")
	}
}

// lockedText is lines that one goroutine adds and another reads.
type lockedText struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *lockedText) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(line + "\n")
}

// log is what the daemon has logged until now, all its processes one after the other.
func (d *cloved) log() string {
	d.lines.mu.Lock()
	defer d.lines.mu.Unlock()
	return d.lines.text.String()
}

// stop ends the daemon, by TERM or KILL, and waits for it.
func (d *cloved) stop(signal unix.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(signal); err != nil {
		return // it has ended
	}
	d.cmd.Wait() // the exit status is 0 or the signal's
}

// clean removes every run that a test left.
func (d *cloved) clean() {
	c, err := client.Dial(context.Background(), d.socket)
	if err != nil {
		d.t.Logf("no daemon to clean up with: %v", err)
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	listed, err := client.Collect(client.All(ctx, c, methods.RunList, listAll))
	if err != nil {
		d.t.Error(err)
	}
	for _, one := range listed {
		run := one.Run
		// A run with --rm may end between the list and this call.
		if err := client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: string(run.Spec.ID)}, Force: true}); err != nil && agent.KindOf(err) != agent.KindNotFound {
			d.t.Errorf("cannot remove %s: %v", run.Spec.Name, err)
		}
	}
}

// detach starts a detached agent that runs a shell script.
func (d *cloved) detach(name, script string, flags ...string) string {
	d.t.Helper()
	args := append([]string{"run", "-d", "--name", name}, flags...)
	r := d.clove(append(args, "--", "sh", "-c", script)...)
	if r.code != 0 {
		d.t.Fatalf("clove run -d: %d, %s", r.code, r.stderr)
	}
	return strings.TrimSpace(r.stdout)
}

// ok runs a command that must succeed and returns what it wrote.
func (d *cloved) ok(args ...string) string {
	d.t.Helper()
	r := d.clove(args...)
	if r.code != 0 {
		d.t.Fatalf("clove %s: %d, %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}
