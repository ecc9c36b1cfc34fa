package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// ended returns a container and a record of it with a given beginning.
func ended(id string, at time.Time, code int) (agent.Container, agent.Record) {
	return agent.Container{ID: id, Directory: "/run/engine/" + id},
		agent.Record{Version: agent.RecordVersion, ID: agent.ID(id), Name: id, Command: []string{"sh"}, Started: at, Ended: at.Add(time.Second),
			Status: agent.StatusExited, ExitCode: code}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestAContainerIsAnEndedRunOfRoots(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	run, err := s.KeepContainer(ended("one", noon, 7))
	must(t, err)
	got, err := s.Get("oci+one")
	must(t, err)
	if got.Spec.ID != run.Spec.ID || got.State != agent.StateEnded || got.Owner != (agent.Owner{}) || got.Container.ID != "one" || got.Record.ExitCode != 7 ||
		got.Record.ID != got.Spec.ID || got.Record.Name != got.Spec.Name || got.Layer != "" || got.Lease != nil {
		t.Errorf("%+v", got)
	}
	news, _, err := s.Events(0, 10)
	must(t, err)
	if len(news) != 1 || news[0].Kind != agent.ContainerEnded || *news[0].ExitCode != 7 || news[0].Status != agent.StatusExited || news[0].Sum != nil {
		t.Errorf("%+v", news)
	}
	must(t, s.Remove(run.Spec.ID))
	if _, err := s.Get("oci+one"); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("it is left: %v", err)
	}
}

// TestAContainersRecordReplacesItsOwn: it replaces no other's. If it is reported twice, as by
// a monitor that was killed in between, there is one.
func TestAContainersRecordReplacesItsOwn(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for _, code := range []int{3, 4} { // the second is another report of the first one's end
		_, err := s.KeepContainer(ended("one", noon, code))
		must(t, err)
	}
	run, err := s.Get("oci+one")
	must(t, err)
	if run.Record.ExitCode != 3 || run.Previous != nil {
		t.Errorf("reported twice: %+v", run)
	}
	_, err = s.KeepContainer(ended("one", noon.Add(time.Hour), 5))
	must(t, err)
	run, err = s.Get("oci+one")
	must(t, err)
	if run.Record.ExitCode != 5 || run.Previous == nil || run.Previous.ExitCode != 3 {
		t.Errorf("started again: %+v", run)
	}
	elsewhere, record := ended("one", noon, 6)
	elsewhere.Directory = "/run/another/one"
	other, err := s.KeepContainer(elsewhere, record)
	must(t, err)
	if run, err = s.Get("oci+one"); err != nil || run.Record.ExitCode != 5 || other.Spec.Name != elsewhere.LongName() {
		t.Errorf("another engine's: %v, %+v, %s", err, run, other.Spec.Name)
	}
}

// TestNobodyBecomesAContainer: neither the run with its id nor the one with its name.
func TestNobodyBecomesAContainer(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	c, record := ended("one", noon, 0)
	mine := newRun("mine")
	mine.Spec.ID = c.RunID()
	_, err := s.Enqueue(mine)
	must(t, err)
	_, err = s.KeepContainer(c, record)
	wantKind(t, err, agent.KindConflict)
	if run, err := s.Get("mine"); err != nil || run.State != agent.StateQueued || run.Container != nil {
		t.Errorf("%v, %+v", err, run)
	}
	_, err = s.Enqueue(newRun("oci+two"))
	wantKind(t, err, agent.KindInvalid)
}

func TestARecordThatIsNoContainers(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for name, change := range map[string]func(*agent.Container, *agent.Record){
		"another's":    func(_ *agent.Container, r *agent.Record) { r.ID = "two" },
		"a later one":  func(_ *agent.Container, r *agent.Record) { r.Version++ },
		"never began":  func(_ *agent.Container, r *agent.Record) { r.Started = time.Time{} },
		"without id":   func(c *agent.Container, r *agent.Record) { c.ID, r.ID, r.Name = "", "", "" },
		"no directory": func(c *agent.Container, _ *agent.Record) { c.Directory = "one" },
	} {
		c, record := ended("one", noon, 0)
		change(&c, &record)
		if _, err := s.KeepContainer(c, record); agent.KindOf(err) != agent.KindInvalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if ids, err := s.IDs(); err != nil || len(ids) != 0 {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestAContainersRunStaysWhatItIs(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	run, err := s.KeepContainer(ended("one", noon, 0))
	must(t, err)
	for name, change := range map[string]func() error{
		"restart": func() error { _, err := s.Requeue(run.Spec.ID, nil); return err },
		"rename":  func() error { _, err := s.Rename(run.Spec.ID, "mine"); return err },
	} {
		if err := change(); agent.KindOf(err) != agent.KindConflict || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestContainersDoNotFillTheStore: the oldest records are dropped, and never an agent's.
func TestContainersDoNotFillTheStore(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	s := open(t, path)
	s.db.NoSync = true // saves the sync of a thousand transactions
	mine, err := s.Enqueue(newRun("mine"))
	must(t, err)
	for i := range MaxContainers + 1 {
		_, err := s.KeepContainer(ended(fmt.Sprintf("c%d", i), noon.Add(time.Duration(-i)*time.Minute), 0))
		must(t, err)
	}
	runs, err := s.List()
	must(t, err)
	kept := slices.DeleteFunc(slices.Clone(runs), func(r agent.Run) bool { return r.Container == nil })
	if len(kept) != MaxContainers+1-containersCut || len(runs) != len(kept)+1 {
		t.Errorf("%d containers of %d runs", len(kept), len(runs))
	}
	// They were reported from the newest to the oldest.
	if oldest := kept[len(kept)-1]; oldest.Container.ID != fmt.Sprintf("c%d", MaxContainers-containersCut) {
		t.Errorf("the oldest is %s", oldest.Container.ID)
	}
	if run, err := s.Get(string(mine.Spec.ID)); err != nil || run.State != agent.StateQueued {
		t.Errorf("%v, %+v", err, run)
	}
}
