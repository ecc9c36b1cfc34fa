//go:build root

package container

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/cgroups"
	cgroupmanager "github.com/opencontainers/cgroups/manager"

	"clove.run/clove/internal/creates"
	"clove.run/clove/internal/testhost"
)

// A create that was killed when it had made the cgroup and no process leaves nothing behind a
// removal. The control: without the note, the cgroup stays.
func TestTheCgroupOfAnUnfinishedCreateIsRemoved(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	for _, noted := range []bool{false, true} {
		e := Engine{Root: t.TempDir(), Register: filepath.Join(t.TempDir(), creates.Name)}
		directory := filepath.Join(e.Root, "one")
		if err := os.Mkdir(directory, 0o711); err != nil {
			t.Fatal(err)
		}
		place := &cgroups.Cgroup{Name: "clove-unfinished", Parent: "clove-unfinished-test", Resources: &cgroups.Resources{}}
		held, err := e.begin(directory, place)
		if err != nil {
			t.Fatal(err)
		}
		held.Close()
		f, err := creates.Find(e.Register, directory)
		if err != nil || len(f.Paths) == 0 {
			t.Fatalf("%+v: %v", f, err)
		}
		for _, path := range f.Paths { // as libcontainer makes them
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(filepath.Dir(path)) })
		}
		if !noted {
			if err := creates.End(e.Register, directory); err != nil {
				t.Error(err)
			}
		}
		if err := e.RemoveUnfinished("one"); err != nil {
			t.Error(err)
		}
		for _, path := range f.Paths {
			if _, err := os.Stat(path); os.IsNotExist(err) != noted {
				t.Errorf("noted: %t: %s: %v", noted, path, err)
			}
		}
		m, err := cgroupmanager.NewWithPaths(place, f.Paths)
		if err == nil {
			err = m.Destroy()
		}
		if err != nil {
			t.Error(err)
		}
	}
}
