package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/logs"
	"clove.run/clove/runtime"
)

// fullDisk is a launcher whose agent cannot start, and whose record cannot be written until
// the test makes room.
type fullDisk struct{ room chan struct{} }

func (f fullDisk) Run(_ context.Context, _ agent.Spec, streams runtime.IO) (agent.Record, error) {
	record := agent.Record{Version: agent.RecordVersion, Error: &agent.Failure{Step: "root", Message: "there is no space"}}
	streams.Waits(record)
	<-f.room
	return record, errors.New("something is left")
}

func (fullDisk) Refuse(agent.ID, error) error { return nil }

// talker is a launcher whose agent ends in the middle of a line.
type talker struct{ stored func() }

func (l talker) Run(_ context.Context, _ agent.Spec, streams runtime.IO) (agent.Record, error) {
	record := agent.Record{Version: agent.RecordVersion, Error: &agent.Failure{Message: "it ended"}}
	if _, err := streams.Stdout.WriteString("whole\nhalf"); err != nil {
		return record, err
	}
	streams.Drained()
	l.stored()
	return record, nil
}

func (talker) Refuse(agent.ID, error) error { return nil }

// When the end is stored, the log has all of the output, with a terminal too.
func TestTheLogIsWholeBeforeTheEndIsStored(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{false, true} {
		_, pipe, err := os.Pipe()
		must(t, err)
		dir := filepath.Join(t.TempDir(), "log")
		order := Order{Spec: agent.Spec{ID: "0123456789abcdef", Name: "one", Terminal: terminal}, LogDir: dir, LogCapBytes: 1 << 20}
		text := ""
		stored := func() {
			must(t, logs.Read(t.Context(), dir, logs.Choice{Tail: -1}, func(line api.LogLine) error { text += strings.TrimSpace(line.Text) + "|"; return nil }))
		}
		must(t, Supervise(t.Context(), talker{stored}, t.TempDir(), order, pipe))
		if text != "whole|half|" {
			t.Errorf("terminal %v: when the end was stored the log had %q", terminal, text)
		}
	}
}

// The caller of a start gets the failure while the record still waits for room on the disk,
// which may last days.
func TestAFailedStartIsToldBeforeItIsRecorded(t *testing.T) {
	t.Parallel()
	hear, pipe, err := os.Pipe()
	must(t, err)
	defer hear.Close()
	dir, launcher := t.TempDir(), fullDisk{make(chan struct{})}
	order := Order{Spec: agent.Spec{ID: "0123456789abcdef", Name: "one"}, LogDir: filepath.Join(dir, "log"), LogCapBytes: 1 << 20}
	ended := make(chan error, 1)
	go func() { ended <- Supervise(t.Context(), launcher, dir, order, pipe) }()
	must(t, hear.SetReadDeadline(time.Now().Add(time.Minute)))
	var a Answer
	must(t, json.NewDecoder(hear).Decode(&a))
	if a.Started || a.Error == nil || a.Error.Message != "there is no space" {
		t.Errorf("%+v", a)
	}
	close(launcher.room)
	if err := <-ended; err == nil {
		t.Error("what is left is no error")
	}
}

// stuckStore is a launcher whose store does not answer.
type stuckStore struct {
	fullDisk
	release chan struct{}
}

func (s stuckStore) Refuse(agent.ID, error) error { <-s.release; return errors.New("late") }

// The caller of a start that failed gets the error, also if the failure cannot be stored.
func TestARefusalThatIsNotNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cause, began := errors.New("cause"), time.Now()
		stuck := stuckStore{release: make(chan struct{})}
		if err := refuse(stuck, someID, cause); err != cause || time.Since(began) != refusePatience {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		close(stuck.release)
		if err := refuse(stuck, someID, cause); !errors.Is(err, cause) || !strings.Contains(err.Error(), "late") {
			t.Errorf("control: %v", err)
		}
	})
}
