//go:build root

package container

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/cgroups"
	cgroupmanager "github.com/opencontainers/cgroups/manager"

	"clove.run/clove/internal/testhost"
)

// A create that was killed when it had made the cgroup and no process leaves nothing behind a
// removal. The control: without cgroupFile, the cgroup stays.
func TestTheCgroupOfAnUnfinishedCreateIsRemoved(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	for _, announced := range []bool{false, true} {
		e := Engine{Root: t.TempDir()}
		directory := filepath.Join(e.Root, "one")
		if err := os.Mkdir(directory, 0o711); err != nil {
			t.Fatal(err)
		}
		place := &cgroups.Cgroup{Name: "clove-unfinished", Parent: "clove-unfinished-test", Resources: &cgroups.Resources{}}
		if err := announce(directory, place); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(directory, cgroupFile))
		if err != nil {
			t.Fatal(err)
		}
		var f future
		if err := json.Unmarshal(text, &f); err != nil || len(f.Paths) == 0 {
			t.Fatalf("%s: %v", text, err)
		}
		for _, path := range f.Paths { // as libcontainer makes them
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(filepath.Dir(path)) })
		}
		if !announced {
			os.Remove(filepath.Join(directory, cgroupFile))
		}
		if err := e.RemoveUnfinished("one"); err != nil {
			t.Error(err)
		}
		for _, path := range f.Paths {
			if _, err := os.Stat(path); os.IsNotExist(err) != announced {
				t.Errorf("announced: %t: %s: %v", announced, path, err)
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
