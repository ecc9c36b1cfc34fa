package container

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestTheStateIsThatOfTheMoment(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	process := child(t)
	pid := process.Process.Pid
	kept(t, e, "one", pid)
	want := State{
		OCIVersion: "1.3.0", ID: "one", Pid: pid, Status: "running", Bundle: "/bundles/one", Rootfs: "/bundles/one/rootfs", Created: created,
		Annotations: map[string]string{"run.clove.limits.pids": "64", "org.example": "a=b"},
	}
	check := func(step string) {
		t.Helper()
		c := load(t, e, "one")
		if got, err := c.State(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", step, err, got, want)
		}
		if want.Pid != 0 && c.Waits() != (want.Status == "created") {
			t.Errorf("%s: it waits: %t", step, c.Waits())
		}
	}
	check("it runs")
	fifo(t, e, "one")
	want.Status = "created"
	check("it waits for its start")
	_ = process.Process.Kill()
	_ = process.Wait()
	want.Status, want.Pid = "stopped", 0
	check("it is dead")
}

func TestOneBrokenContainerDoesNotHideTheOthers(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	kept(t, e, "one", os.Getpid())
	kept(t, e, "two", os.Getpid())
	if err := os.WriteFile(filepath.Join(e.Root, "two", "state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(e.Root, "unfinished"), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.Root, "a file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var complaints strings.Builder
	states, err := e.List(&complaints)
	if err != nil || len(states) != 1 || states[0].ID != "one" || states[0].Owner == "" {
		t.Errorf("%v, %+v", err, states)
	}
	for _, want := range []string{"load container two: ", "load container unfinished: container does not exist\n"} {
		if !strings.Contains(complaints.String(), want) {
			t.Errorf("%q is not in %q", want, complaints.String())
		}
	}
	if strings.Count(complaints.String(), "\n") != 2 {
		t.Errorf("complaints: %q", complaints.String())
	}
}
