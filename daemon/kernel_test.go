package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// While cloved serves, only cloved opens kernel.db: it copies and checks it for other
// commands.
func TestKernelIsClovedsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	path := r.d.options.Paths.Kernel()
	var copied string
	t.Run("serving", func(t *testing.T) {
		r.t = t
		c := r.serve()
		if _, err := store.OpenKernel(path, 10*time.Millisecond); agent.KindOf(err) != agent.KindBusy || err == nil {
			t.Errorf("a second opener: %v", err)
		}
		if problems, err := c.CheckKernel(within(t)); err != nil || len(problems) != 0 {
			t.Errorf("%q, %v", problems, err)
		}
		copied = filepath.Join(r.dir, "copy")
		must(t, c.BackupKernel(within(t), copied))
		if err := c.BackupKernel(within(t), copied); agent.KindOf(err) != agent.KindConflict {
			t.Errorf("it replaces a file: %v", err)
		}
		if err := c.BackupKernel(within(t), "copy"); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("a path of cloved's own directory: %v", err)
		}
	})
	for _, path := range []string{copied, path} { // closed again, and both intact
		k, err := store.OpenKernel(path, patience)
		must(t, err)
		if problems, err := k.Check(); err != nil || problems != nil {
			t.Errorf("%s: %q, %v", path, problems, err)
		}
		must(t, k.Close())
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
