package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/runtime"
)

// fullDisk is a launcher whose agent cannot start, and whose record finds no
// room until somebody makes some.
type fullDisk struct{ room chan struct{} }

func (f fullDisk) Run(_ context.Context, _ agent.Spec, streams runtime.IO) (agent.Record, error) {
	record := agent.Record{Version: agent.RecordVersion, Error: &agent.Failure{Step: "root", Message: "there is no space"}}
	streams.Waits(record)
	<-f.room
	return record, errors.New("something is left")
}

func (fullDisk) Refuse(agent.ID, error) error { return nil }

// Who asked for a start hears that it failed while its record still waits for
// room on the disk: it may wait for days.
func TestAFailedStartIsToldBeforeItIsRecorded(t *testing.T) {
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
