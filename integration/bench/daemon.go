package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	cloveclient "clove.run/clove/client"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/store"
)

// How much the daemon is given to do.
const (
	records     = 10_000 // of runs that have ended
	liveAgents  = 500
	startsAhead = 16 // clients that start agents at the same time
	subscribers = 100
)

// cloved is a daemon that is measured, with directories of its own.
type cloved struct {
	*bench
	cmd      *exec.Cmd
	run      string
	state    string
	settings string           // more lines of its configuration
	on       *nsthread.Thread // in whose namespaces it runs; nil: the host's
	// Reads cloved's log, which it writes to stderr.
	complain *bufio.Scanner
}

// measureDaemon measures one cloved with many ended runs, and then another one with
// many agents.
func (b *bench) measureDaemon(t *table) error {
	past := b.newCloved("past")
	if err := past.remember(records); err != nil {
		return fmt.Errorf("cannot make a past: %w", err)
	}
	for _, measure := range []func(*table) error{past.starts, past.listings, past.calls, past.events} {
		if err := measure(t); err != nil {
			return errors.Join(err, past.end())
		}
	}
	if err := past.end(); err != nil {
		return err
	}
	many := b.newCloved("many")
	if err := many.serve(); err != nil {
		return err
	}
	return errors.Join(many.agents(t), many.end())
}

// newCloved has directories of its own and is not started yet.
func (b *bench) newCloved(name string) *cloved {
	return &cloved{bench: b, run: filepath.Join(b.scratch, name+"-run"), state: filepath.Join(b.scratch, name)}
}

// serve starts cloved and returns when its log says that it is ready. That line and not
// a first answer: asking again and again would be in the measurement.
func (d *cloved) serve() error {
	config := filepath.Join(d.scratch, "clove.yaml")
	// memory_share 0, so that no agent waits in the queue for memory that others are
	// promised and do not use. Without a group, because the host may not have it.
	if err := os.WriteFile(config, []byte("group: \"\"\nmemory_share: 0\n"+d.settings), 0o600); err != nil {
		return err
	}
	d.cmd = exec.Command(filepath.Join(filepath.Dir(d.clove), "cloved"), "--root", d.state, "--run-dir", d.run, "--config", config)
	said, err := d.cmd.StderrPipe()
	if err != nil {
		return err
	}
	start := d.cmd.Start
	if d.on != nil {
		start = func() error { return d.on.Do(d.cmd.Start) }
	}
	if err := start(); err != nil {
		return err
	}
	d.complain = bufio.NewScanner(said)
	var last string
	for d.complain.Scan() {
		if last = d.complain.Text(); strings.Contains(last, "msg=ready") {
			go func() {
				for d.complain.Scan() { // a full pipe would block cloved
				}
			}()
			return nil
		}
	}
	return fmt.Errorf("cloved ended before it was ready: %s (%w)", last, d.cmd.Wait())
}

// end ends cloved. Its agents have ended before.
func (d *cloved) end() error {
	if d.cmd == nil {
		return nil
	}
	if err := d.cmd.Process.Signal(unix.SIGTERM); err != nil {
		return err
	}
	err := d.cmd.Wait()
	d.cmd = nil
	return err
}

// dial opens a connection of its own for each caller.
func (d *cloved) dial() (*cloveclient.Client, error) {
	return cloveclient.Dial(context.Background(), filepath.Join(d.run, "clove.sock"))
}

// remember writes the runs of an invented past into a new store. It writes in memory
// and copies the file, because on a disk each transaction waits for a sync.
func (d *cloved) remember(number int) error {
	dir, err := os.MkdirTemp("/dev/shm", "clove-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "clove.db")
	s, err := store.Open(path, time.Minute)
	if err != nil {
		return err
	}
	for i := range number {
		if err := livedOnce(s, i); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.state, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.state, "clove.db"), text, 0o600)
}

// livedOnce stores one run from its request to its end, by the calls that cloved makes.
func livedOnce(s *store.Store, number int) error {
	spec := idleSpec(fmt.Sprintf("past-%d", number))
	began := time.Now().Add(-time.Hour)
	if _, err := s.Enqueue(agent.Run{Spec: spec, Created: began}); err != nil {
		return err
	}
	record := agent.Record{Version: agent.RecordVersion, ID: spec.ID, Name: spec.Name, Command: spec.Command, Started: began, Ended: time.Now(),
		Status: agent.StatusExited, Denials: []agent.Denial{}, Enforced: map[string]string{"memory": "cgroup v2", "pids": "cgroup v2", "disk": "ext4 image"}, Unenforced: []string{}}
	_, err := s.Finish(spec.ID, agent.EventRecorded, record, nil)
	return err
}
