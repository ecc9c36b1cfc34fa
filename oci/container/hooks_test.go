package container

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// hooks records its calls, and fails those that fails names.
type hooks struct {
	asked []string
	fails string
}

func (w *hooks) note(what string) error {
	w.asked = append(w.asked, what)
	if what == w.fails {
		return errors.New(what + " refused")
	}
	return nil
}

func (w *hooks) Created(*Container, []string) error { return w.note("created") }
func (w *hooks) Loaded(*Container) error            { return w.note("loaded") }
func (w *hooks) Starting(*Container) error          { return w.note("starting") }
func (w *hooks) Ended(*Container) error             { return w.note("ended") }

func TestNothingHappensWithoutTheHooks(t *testing.T) {
	for name, row := range map[string]struct {
		fails string
		do    func(*Container) error
		waits bool
		want  []string
		err   string
		stays bool
	}{
		"a start that is not held": {"starting", func(c *Container) error { return c.Exec("") }, true,
			[]string{"loaded", "starting"}, "starting refused", true},
		"a removal":                {"", func(c *Container) error { return c.Delete(true) }, false, []string{"loaded", "ended"}, "", false},
		"a removal before a start": {"", func(c *Container) error { return c.Delete(false) }, true, []string{"loaded", "ended"}, "", false},
		"a removal that has to wait": {"ended", func(c *Container) error { return c.Delete(true) }, false,
			[]string{"loaded", "ended"}, "ended refused", true},
		"a hooks that cannot be had": {"loaded", func(c *Container) error { return c.Delete(true) }, false,
			[]string{"loaded", "ended"}, "", false},
	} {
		w := &hooks{fails: row.fails}
		e := Engine{Root: t.TempDir(), Hooks: w}
		kept(t, e, "one", child(t).Process.Pid)
		if row.waits {
			fifo(t, e, "one")
		}
		err := row.do(load(t, e, "one"))
		text := ""
		if err != nil {
			text = err.Error()
		}
		_, left := os.Stat(filepath.Join(e.Root, "one"))
		if text != row.err || !reflect.DeepEqual(w.asked, row.want) || (left == nil) != row.stays {
			t.Errorf("%s: %v, asked %v, directory %v", name, err, w.asked, left)
		}
	}
}

// TestHooksSeeTheContainersState: those of state.json.
func TestHooksSeeTheContainersState(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	pid := os.Getpid()
	kept(t, e, "one", pid)
	got, err := load(t, e, "one").Kept()
	if err != nil || got.ID != "one" || got.Pid != pid || got.StartTime == 0 || got.Directory != filepath.Join(e.Root, "one") {
		t.Errorf("%v, %+v", err, got)
	}
}
