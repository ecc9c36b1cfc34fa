package runtime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestTheLockTellsTheLivingFromTheDead(t *testing.T) {
	t.Parallel()
	paths := Paths{State: t.TempDir(), Run: t.TempDir()}
	const id = "0123456789abcdef"
	if _, err := lives(paths.runDirectory(id)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no directory: got %v", err)
	}
	d, err := newRunDirectory(paths, id)
	if err != nil {
		t.Fatal(err)
	}
	if alive, err := lives(d.path); err != nil || !alive {
		t.Errorf("alive: got %v, %v", alive, err)
	}
	if _, err := claim(paths, id); !errors.Is(err, errAlive) {
		t.Errorf("claimed while it is alive: %v", err)
	}
	if _, err := makeRunDirectory(paths, id); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second run with the same id: got %v", err)
	}
	d.letGo() // as the kernel does when the supervisor dies
	claimed, err := claim(paths, id)
	if err != nil {
		t.Fatalf("dead: got %v", err)
	}
	if _, err := claim(paths, id); !errors.Is(err, errAlive) {
		t.Errorf("claimed twice: %v", err)
	}
	if err := claimed.remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(paths.Run); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAClaimKeepsARunFromStarting: the release of the claim allows the start again, both if
// the directory existed before the claim and if the claim made it.
func TestAClaimKeepsARunFromStarting(t *testing.T) {
	t.Parallel()
	paths := Paths{State: t.TempDir(), Run: t.TempDir()}
	const id = "0123456789abcdef"
	claimed, err := claim(paths, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim(paths, id); !errors.Is(err, errAlive) {
		t.Errorf("claimed twice: %v", err)
	}
	started := make(chan error, 1)
	go func() {
		d, err := newRunDirectory(paths, id)
		if err == nil {
			d.letGo() // it dies at once
		}
		started <- err
	}()
	if _, err := makeRunDirectory(paths, id); !errors.Is(err, fs.ErrExist) {
		t.Errorf("started while it was claimed: %v", err)
	}
	claimed.release()
	if err := <-started; err != nil {
		t.Errorf("the start that waited: %v", err)
	}
	if claimed, err = claim(paths, id); err != nil {
		t.Fatal(err)
	}
	claimed.release()
	if !exists(claimed.path) {
		t.Error("the release of a claim took what was there before")
	}
}

// TestManyMayLookAtTheDead: none of them takes the lock of another's look for a live
// supervisor.
func TestManyMayLookAtTheDead(t *testing.T) {
	t.Parallel()
	paths := Paths{State: t.TempDir(), Run: t.TempDir()}
	const id = "0123456789abcdef"
	d, err := newRunDirectory(paths, id)
	if err != nil {
		t.Fatal(err)
	}
	d.letGo() // as the kernel does
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				if alive, err := lives(d.path); err != nil || alive {
					t.Errorf("alive: %v, %v", alive, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A look at a run that is removing its directory makes no new lock file in it, which would
// leave the directory behind.
func TestALookLeavesNoDirectoryBehind(t *testing.T) {
	t.Parallel()
	paths := Paths{State: t.TempDir(), Run: t.TempDir()}
	const id = "0123456789abcdef"
	ended, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			select {
			case <-ended:
				return
			default:
				_, _ = lives(paths.runDirectory(id))
			}
		}
	}()
	for range 2000 {
		d, err := newRunDirectory(paths, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.remove(); err != nil || exists(d.path) {
			t.Errorf("%v, and it is there: %v", err, exists(d.path))
			break
		}
	}
	close(ended)
	<-looked
}

// A log is removed although its supervisor creates it again at the same time.
func TestALogIsRemovedWhileItIsMade(t *testing.T) {
	t.Parallel()
	paths := Paths{State: t.TempDir()}
	const id = "0123456789abcdef"
	ended, made := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(made)
		for {
			select {
			case <-ended:
				return
			default: // both may find that the directory is gone
				_ = os.MkdirAll(paths.Log(id), 0o700)
				_ = os.WriteFile(filepath.Join(paths.Log(id), "log"), nil, 0o600)
			}
		}
	}()
	for range 100 {
		for !exists(paths.Log(id)) {
		}
		if err := paths.RemoveLog(id); err != nil {
			t.Error(err)
			break
		}
	}
	close(ended)
	<-made
}
