package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// next is a control behind one that is gone, with its ledger and its journals.
func next(t *testing.T, before *rig, run agent.Run) *rig {
	t.Helper()
	r := newRigWith(t, before.ledger)
	r.ledger = before.ledger
	r.journalsIn(before.desk.Journals)
	r.desk.Run = func(id agent.ID) (agent.Run, error) {
		if id != run.Spec.ID {
			return agent.Run{}, errors.New("no such run")
		}
		return run, nil
	}
	return r
}

// journalsIn has calls outlast the control.
func (r *rig) journalsIn(dir string) { r.desk.Journals, r.launcher.Journals = dir, dir }

// journals are the files in the directory.
func (r *rig) journals() (paths []string) {
	r.t.Helper()
	paths, err := filepath.Glob(filepath.Join(r.desk.Journals, "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	return paths
}

// flyingCall is a call that clove-upstream makes, of a control with journals.
func flyingCall(t *testing.T) (r *rig, run agent.Run, c link.Call) {
	t.Helper()
	r = newRig(t)
	r.journalsIn(filepath.Join(t.TempDir(), "models"))
	run = r.serve(1000)
	f := within(t, r.fronts)
	if err := f.conn.Send(link.FromFront{Begin: &link.Begin{Number: 1, Run: run.Spec.ID, Format: models.OpenAIChat, Model: "tiny", In: 10, Out: 20, N: 1}}); err != nil {
		t.Fatal(err)
	}
	up := within(t, within(t, r.upstreams).up)
	return r, run, *up.Call
}

// A control that closes leaves calls in flight to their processes. The next one settles each
// with what it used, whenever it ends, and counts it for its run.
func TestTheNextControlSettlesACall(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(write, found func()){
		"before it comes": func(write, found func()) { write(); found() },
		"afterwards":      func(write, found func()) { found(); write() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, run, c := flyingCall(t)
			paths := first.journals()
			if len(paths) != 2 {
				t.Fatalf("%v", paths)
			}
			// The processes keep the files open, and with them the locks.
			held := holdUpstream(t, paths)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if len(first.ledger.settled) != 0 || len(first.journals()) != 2 {
				t.Fatalf("control: %d are settled, %v", len(first.ledger.settled), first.journals())
			}
			second := next(t, first, run)
			ends(func() {
				line, err := json.Marshal(link.Done{Number: c.Number, Status: 200, Complete: true, Sent: true, Usage: models.Usage{In: 7, Out: 5}, Ticket: c.Ticket})
				if err == nil {
					_, err = held.Write(append(line, "\n"...))
				}
				if err != nil {
					t.Fatal(err)
				}
			}, func() {
				if _, err := second.Find(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			if used := within(t, first.ledger.settled); used[budget.TokensIn] != 7 || used[budget.TokensOut] != 5 || used[budget.ModelCalls] != 1 || used[budget.CostMicros] != 57 {
				t.Errorf("%v", used)
			}
			held.Close()
			eventually(t, "the journals are gone", func() bool { return len(second.journals()) == 0 })
			second.serveRun(run)
			if used := second.used(); len(used) != 1 || used[0] != (agent.ModelUse{Model: "small", Calls: 1, TokensIn: 7, TokensOut: 5, CostMicros: 57}) {
				t.Errorf("%+v", used)
			}
		})
	}
}

// holdUpstream opens the journal of clove-upstream as that process would have it.
func holdUpstream(t *testing.T, paths []string) *os.File {
	t.Helper()
	for _, path := range paths {
		if found, _ := filepath.Match(upstreamProgram+"-*", filepath.Base(path)); !found {
			continue
		}
		file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		if err == nil {
			err = descriptor.Lock(file, unix.LOCK_EX|unix.LOCK_NB)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	t.Fatalf("there is none among %v", paths)
	return nil
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Without a call in flight nothing is left.
func TestNothingIsLeftOfAControlWithoutCalls(t *testing.T) {
	t.Parallel()
	r, _, c := flyingCall(t)
	r.desk.upstreams.Lock()
	u := r.desk.upstreams.current
	r.desk.upstreams.Unlock()
	u.flight(c.Number).done(link.Done{Number: c.Number, Status: 200, Complete: true, Sent: true})
	within(t, r.ledger.settled)
	if err := r.Close(); err != nil || len(r.journals()) != 0 {
		t.Errorf("%v, %v", r.journals(), err)
	}
}

// What a journal says of another's reservations, of runs that are gone, or in no form at all
// settles nothing.
func TestOddJournals(t *testing.T) {
	t.Parallel()
	first, run, c := flyingCall(t)
	held := holdUpstream(t, first.journals())
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	other := link.Done{Status: 200, Sent: true, Usage: models.Usage{In: 7}}
	for _, text := range []string{`{"run":"another","reservation":"1"}`, `{"run":"` + string(run.Spec.ID) + `","reservation":"77"}`, `{}`, `[]`} {
		other.Ticket = json.RawMessage(text)
		line, err := json.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := held.Write(append(line, "\n"...)); err != nil {
			t.Fatal(err)
		}
	}
	good, err := json.Marshal(link.Done{Number: c.Number, Status: 200, Complete: true, Sent: true, Usage: models.Usage{Out: 1}, Ticket: c.Ticket})
	if err == nil {
		_, err = held.WriteString("{no json\n\n" + string(good) + "\n{\"half")
	}
	if err != nil {
		t.Fatal(err)
	}
	second := next(t, first, run)
	if _, err := second.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := within(t, first.ledger.settled); used[budget.TokensOut] != 1 || len(first.ledger.settled) != 0 {
		t.Errorf("%v", used)
	}
}

// A process that goes on for longer than any call may is killed; one that has the number of
// another that ended is not.
func TestAProcessThatGoesOnIsKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.journalsIn(t.TempDir())
	for _, same := range []bool{true, false} {
		file, err := keep.NewJournal(r.desk.Journals, "sleep")
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command("sleep", "60")
		command.ExtraFiles = []*os.File{file}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- command.Wait() }()
		if same {
			err = keep.Sign(file, command.Process.Pid)
		} else {
			_, err = fmt.Fprintf(file, `{"pid":%d,"started":1}`+"\n", command.Process.Pid)
		}
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(file.Name(), r.found, r.desk.Log)
		if err != nil || j.ended() {
			t.Fatalf("it has ended: %v", err)
		}
		j.kill()
		if same {
			within(t, ended)
			if !j.ended() || len(r.journals()) != 0 {
				t.Errorf("%v", r.journals())
			}
			continue
		}
		p, err := pidfd.Open(command.Process.Pid)
		if err != nil || p.WaitFor(200*time.Millisecond) {
			t.Errorf("another process was killed: %v", err)
		}
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		within(t, ended)
	}
}
