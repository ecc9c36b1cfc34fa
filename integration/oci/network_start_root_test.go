//go:build root

package oci

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/oci"
	"clove.run/clove/oci/guard"
)

// TestOfManyStartsAtOnceOneIsHeld: the others are refused, and neither their failure nor their
// removal removes its rules.
func TestOfManyStartsAtOnceOneIsHeld(t *testing.T) {
	n := newNode(t)
	n.serve()
	const many = 4
	results := make([]ocitest.Result, many)
	var ready, done sync.WaitGroup
	ready.Add(many)
	for i := range many {
		id := "many" + strconv.Itoa(i)
		n.Must("create", "--bundle", n.bundle(ocitest.ServerAddress, "exec sleep 1000", n.in(allowing(ocitest.AllowedAddress)...)), id)
		t.Cleanup(func() { n.Do("delete", "--force", id) })
		done.Go(func() {
			ready.Done()
			ready.Wait()
			results[i] = n.Do("start", id)
		})
	}
	done.Wait()
	var held string
	for i, got := range results {
		id := "many" + strconv.Itoa(i)
		switch {
		case got.Status == 0 && held == "":
			held = id
		case got.Status == 0 || !strings.Contains(got.Err, "rules of clove's hold there already"):
			t.Errorf("%s beside %q: %+v", id, held, got)
			fallthrough
		default:
			n.Must("delete", "--force", id)
		}
	}
	if held == "" {
		t.Fatal("none started")
	}
	fetches := fetcher(t, n, held)
	if got := fetches(ocitest.AllowedAddress); got != allowedSays {
		t.Errorf("%q", got)
	}
	if got := fetches(ocitest.OtherAddress); got != "" {
		t.Errorf("another: %q", got)
	}
	n.Must("delete", "--force", held)
	if n.ruled() {
		t.Error("the rules are left")
	}
}

// TestAStartIsAskedAgain: a start that failed or was killed is repeated when the rules already
// apply and the deadline counts. For another process with the same pid nothing is applied.
func TestAStartIsAskedAgain(t *testing.T) {
	n := newNode(t)
	n.serve()
	rules := allowing(ocitest.AllowedAddress, oci.AnnotationTimeout, "1h")
	for name, edits := range map[string][]func(*specs.Spec){
		"an engine's network": {n.in(rules...)},
		"its own network": {n.in(rules...), func(s *specs.Spec) {
			i := slices.IndexFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == specs.NetworkNamespace })
			s.Linux.Namespaces[i].Path = ""
		}},
	} {
		n.Must("create", "--bundle", n.bundle(ocitest.ServerAddress, "exec sleep 1000", edits...), "one")
		order, _, err := oci.Guarded(map[string]string{oci.AnnotationNetworkMode: agent.NetworkAllowlist, oci.AnnotationNetworkAllow: ocitest.AllowedAddress}, "one")
		if err != nil {
			t.Fatal(err)
		}
		order.Directory, order.PID = filepath.Join(n.Root, "one"), pidOf(t, n, "one")
		start, err := pidfd.StartTime(order.PID)
		if err != nil {
			t.Fatal(err)
		}
		order.Start = start + 1
		waits := func() error { return nil }
		if err := guard.Ask(n.path("clove.sock"), order, waits); err == nil || !strings.Contains(err.Error(), "another one") {
			t.Errorf("%s: another process is held: %v", name, err)
		}
		order.Start = start
		if err := guard.Ask(n.path("clove.sock"), order, waits); err != nil {
			t.Fatal(err)
		}
		failStart(t, n.Runtime, "one")
		before, deadline := n.guard("one"), deadlineOf(t, n.Runtime, "one")
		n.Must("start", "one")
		if again := deadlineOf(t, n.Runtime, "one"); deadline == 0 || again != deadline {
			t.Errorf("%s: the deadline %d became %d", name, deadline, again)
		}
		if after := n.guard("one"); after.PID == before.PID || after.Owner != before.Owner {
			t.Errorf("%s: %+v became %+v", name, before, after)
		}
		if name == "an engine's network" {
			fetches := fetcher(t, n, "one")
			if fetches(ocitest.AllowedAddress) != allowedSays || fetches(ocitest.OtherAddress) != "" {
				t.Error("the rules do not hold")
			}
		}
		n.Must("delete", "--force", "one")
		if n.ruled() {
			t.Error("the rules are left")
		}
	}
}

// failStart makes a start fail after all rules are in force: a directory is where libcontainer
// would release the process.
func failStart(t *testing.T, r *ocitest.Runtime, id string) {
	t.Helper()
	fifo := filepath.Join(r.Root, id, "exec.fifo")
	if err := errors.Join(os.Rename(fifo, fifo+".moved"), os.Mkdir(fifo, 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := r.Do("start", id); got.Status != 1 || !strings.Contains(got.Err, "directory") || r.State(id).Status != specs.StateCreated {
		t.Fatalf("it started: %+v", got)
	}
	if err := errors.Join(os.Remove(fifo), os.Rename(fifo+".moved", fifo)); err != nil {
		t.Fatal(err)
	}
}

// pidOf returns the pid of the container's first process.
func pidOf(t *testing.T, n *node, id string) int {
	t.Helper()
	var state struct{ Pid int }
	if err := json.Unmarshal([]byte(n.Must("state", id)), &state); err != nil || state.Pid == 0 {
		t.Fatalf("%+v, %v", state, err)
	}
	return state.Pid
}
