//go:build root

package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/internal/nsthread"
	"golang.org/x/sys/unix"
)

// fullConfig needs every kind of operation.
func (b *bench) fullConfig() Config {
	cfg := testConfig(b.dir)
	cfg.ReadOnly = true
	cfg.Workspace = b.mkdir("ws", map[string]string{"a": "x"})
	data := b.mkdir("data", map[string]string{"file": "x"})
	cfg.Prefixes = []string{b.mkdir("prefix", nil)}
	cfg.Binds = []Bind{{Source: data, Target: "/data"}, {Source: data + "/file", Target: "/conf/file", ReadOnly: true}}
	cfg.Tmpfs = []Tmpfs{{Target: "/scratch", SizeBytes: 1 << 20}}
	return cfg
}

func TestFaultAtEveryStepLeavesNothing(t *testing.T) {
	b := newBench(t)
	full := b.fullConfig()
	own := full
	own.Rootfs = b.mkdir("rootfs", nil)
	for name, cfg := range map[string]Config{"base": full, "rootfs": own} {
		fault := errors.New("fault")
		operations, fds := 1, len(openFiles(t))
		for k := 0; k < operations; k++ {
			var tree *Tree
			var left []string
			b.do(func() error {
				plan, err := NewPlan(cfg)
				if err != nil {
					return err
				}
				operations = len(plan.operations)
				plan.fault = func(at int) error {
					if at == k {
						return fault
					}
					return nil
				}
				tree, err = plan.Mount()
				left = mountsBelow(t, b.dir)
				if !errors.Is(err, fault) {
					return fmt.Errorf("operation %d: got %w", k, err)
				}
				return nil
			})
			images, _ := filepath.Glob(filepath.Join(cfg.StateDir, "layers/*"))
			if tree != nil || len(left)+len(images) > 0 {
				t.Errorf("%s: a fault at operation %d leaves tree %v, mounts %q, images %q", name, k, tree, left, images)
			}
			if now := len(openFiles(t)); now != fds {
				t.Errorf("%s: a fault at operation %d leaves %d open files, %d before", name, k, now, fds)
			}
		}
		if operations < 12 {
			t.Errorf("%s: only %d operations were swept", name, operations)
		}
		waitForNoLoop(t, b.dir)
		// Control: without a fault the same request succeeds.
		tree, err := b.tryMount(cfg)
		if err != nil {
			t.Fatal(err)
		}
		b.do(tree.Discard)
	}
}

func TestKeptLayerCanBeOpened(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	cfg.Workspace = b.mkdir("ws", map[string]string{"a": "x"})
	cfg.Binds = []Bind{{Source: filepath.Join(cfg.Workspace, "a"), Target: "/new/file"}} // not a change by the agent
	tree, err := b.tryMount(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.must(tree, sandboxAgent, "echo y >/workspace/b && rm /workspace/a && echo z >/tmp/t")
	b.must(tree, sandboxRoot, "echo other >/etc/hostname && rm /etc/shells")
	b.do(tree.Close)
	if left := loops(b.dir); len(left) > 0 {
		waitForNoLoop(t, b.dir)
	}

	at := b.mkdir("look", nil)
	var layer *Layer
	b.do(func() (err error) { layer, err = openImage(t, cfg.image(), at); return err })
	want := []string{"C /etc/hostname", "D /etc/shells", "A /tmp/t", "D /workspace/a", "A /workspace/b"}
	var got []string
	b.do(func() error {
		changes, err := layer.Diff(t.Context(), layer.Uppers(), Access{})
		for _, c := range changes {
			got = append(got, fmt.Sprint(c))
		}
		return err
	})
	if !slices.Equal(got, want) {
		t.Errorf("diff\n%q want\n%q", got, want)
	}
	for _, upper := range layer.Uppers() {
		if upper.Since.IsZero() || upper.Prefix == "/workspace" && upper.Lower != cfg.Workspace {
			t.Errorf("upper %+v", upper)
		}
	}
	b.do(func() error {
		if err := os.WriteFile(filepath.Join(at, "x"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("writing to a kept layer: %w", err)
		}
		return layer.Close()
	})
	for range 2 {
		if err := RemoveLayer(cfg.image()); err != nil {
			t.Error(err)
		}
	}
}

func openImage(t *testing.T, path, at string) (*Layer, error) {
	image, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	return OpenLayer(t.Context(), image, at)
}

func TestOpenLayerRefusesWhatIsNone(t *testing.T) {
	b := newBench(t)
	at := b.mkdir("look", nil)
	open := func(image string) error {
		return b.thread.Do(func() error { _, err := openImage(t, image, at); return err })
	}
	if err := open(filepath.Join(b.dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing image: %v", err)
	}
	junk := filepath.Join(b.mkdir("junk", map[string]string{"image": strings.Repeat("x", 1<<20)}), "image")
	if err := open(junk); err == nil {
		t.Error("junk was mounted")
	}
}

// Mounts end with the thread, so nothing has to clean them up after a kill.
func TestNothingOutlivesTheNamespace(t *testing.T) {
	b := newBench(t)
	thread, err := nsthread.Start(unix.CLONE_NEWNS)
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.fullConfig()
	var tree *Tree
	if err := thread.Do(func() error {
		plan, err := NewPlan(cfg)
		if err != nil {
			return err
		}
		tree, err = plan.Mount()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	// Control: they exist while the thread lives, and the host never saw them.
	if len(loops(b.dir)) != 1 || len(mountsBelow(t, b.dir)) != 0 {
		t.Errorf("loops %q, mounts on the host %q", loops(b.dir), mountsBelow(t, b.dir))
	}
	thread.Close()
	tree.layer.Close() // as the kernel does at the end of a killed process
	waitForNoLoop(t, b.dir)
	// Files stay: the image and an empty directory.
	if err := errors.Join(RemoveLayer(cfg.image()), os.Remove(cfg.stage())); err != nil {
		t.Error(err)
	}
}

func TestManyAtOnce(t *testing.T) {
	b := newBench(t)
	var group sync.WaitGroup
	for i := range 16 {
		cfg := testConfig(b.dir)
		cfg.ID, cfg.RunDir = fmt.Sprintf("many-%d", i), b.mkdir(fmt.Sprintf("run-%d", i), nil)
		group.Go(func() {
			thread, err := nsthread.Start(unix.CLONE_NEWNS)
			if err != nil {
				t.Error(err)
				return
			}
			defer thread.Close()
			if err := thread.Do(func() error {
				plan, err := NewPlan(cfg)
				if err != nil {
					return err
				}
				tree, err := plan.Mount()
				if err != nil {
					return err
				}
				return tree.Discard()
			}); err != nil {
				t.Errorf("root %d: %v", i, err)
			}
		})
	}
	group.Wait()
}

func TestAnImageIsNeverReused(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	b.mount(cfg)
	cfg.RunDir = b.mkdir("run2", nil)
	if _, err := b.tryMount(cfg); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second layer of the same name: %v", err)
	}
	if _, err := os.Stat(cfg.image()); err != nil {
		t.Errorf("the failure took the first one's image: %v", err)
	}
}
