//go:build root

package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// again mounts the layer that an earlier mount of cfg left.
func (b *bench) again(cfg Config, fault func(int) error) (tree *Tree, err error) {
	err = b.thread.Do(func() error {
		plan, err := NewPlan(cfg)
		if err != nil {
			return err
		}
		plan = plan.OnKeptLayer()
		plan.fault = fault
		tree, err = plan.Mount()
		return err
	})
	return tree, err
}

// kept makes a layer with files of the agent and of root.
func (b *bench) kept() Config {
	b.t.Helper()
	cfg := testConfig(b.dir)
	cfg.Workspace = b.mkdir("ws", map[string]string{"a": "x", "gone": "x"})
	tree, err := b.tryMount(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.must(tree, sandboxAgent, "echo one >/workspace/mine && rm /workspace/gone && umask 077 && mkdir /home/agent/own && echo s >/home/agent/own/secret")
	b.must(tree, sandboxRoot, "mkdir -p /usr/local/new && echo t >/usr/local/new/tool && chown 5:6 /usr/local/new/tool && chmod 4755 /usr/local/new/tool && head -c 300000 /usr/bin/bash >/var/tmp/bytes")
	b.do(tree.Close)
	return cfg
}

const ofTheAgent = "cat /workspace/mine /home/agent/own/secret && test ! -e /workspace/gone && test -e /workspace/a && stat -c '%u:%g %a' /home/agent/own /usr/local/new/tool"

// With any range of host ids at the next start, files have the same owners inside. The control
// are the ids on the disk, which belong to another range.
func TestAgentGoesOnWithItsLayer(t *testing.T) {
	b := newBench(t)
	cfg := b.kept()
	for i, hostID := range []uint32{testHostID, testHostID + 3*idsPerAgent, testHostID + 9*idsPerAgent, testHostID} {
		b.hostID, cfg.HostID = hostID, hostID
		tree, err := b.again(cfg, nil)
		if err != nil {
			t.Fatalf("range %d: %v", hostID, err)
		}
		if got := b.must(tree, sandboxAgent, ofTheAgent); got != "one\ns\n1000:1000 700\n5:6 4755\n" {
			t.Errorf("range %d: it finds %q", hostID, got)
		}
		b.must(tree, sandboxAgent, fmt.Sprintf("echo %d >>/home/agent/own/starts && touch /workspace/start-%d && mv /workspace/start-%d /home/agent/own/", i, i, i))
		b.must(tree, sandboxRoot, fmt.Sprintf("touch /etc/by-root-%d && chown 7 /etc/by-root-%d", i, i))
		if got, want := b.must(tree, sandboxAgent, "wc -l </home/agent/own/starts"), fmt.Sprintf("%d\n", i+1); got != want {
			t.Errorf("range %d: %q starts, want %q", hostID, got, want)
		}
		for _, upper := range tree.Uppers() {
			if upper.Prefix == "/workspace" {
				if got := ownerOf(t, filepath.Join(upper.Dir, "mine")); got != testHostID+sandboxAgent {
					t.Errorf("control: on the disk it is %d's", got)
				}
			}
		}
		if usage, err := tree.Usage(); err != nil || usage.Bytes < 300000 || usage.Bytes > 500000 {
			t.Errorf("range %d: usage %+v, %v", hostID, usage, err)
		}
		b.do(tree.Close)
	}
	at := b.mkdir("look", nil)
	b.do(func() error {
		image, err := os.Open(cfg.image())
		if err != nil {
			return err
		}
		defer image.Close()
		layer, err := OpenLayer(t.Context(), image, at)
		if err != nil {
			return err
		}
		defer layer.Close()
		changes, err := layer.Diff(t.Context(), layer.Uppers(), Access{})
		var got []string
		for _, c := range changes {
			got = append(got, fmt.Sprint(c))
		}
		for _, want := range []string{"A /workspace/mine", "D /workspace/gone", "A /etc/by-root-3", "A /usr/local/new/tool"} {
			if !slices.Contains(got, want) {
				t.Errorf("the diff lacks %s: %q", want, got)
			}
		}
		return err
	})
	if err := RemoveLayer(cfg.image()); err != nil {
		t.Error(err)
	}
}

// A layer has one writer. The control: this process has closed the image file, and the lock is
// still held, by the loop device.
func TestKeptLayerHasOneUser(t *testing.T) {
	b := newBench(t)
	cfg := b.kept()
	tree, err := b.again(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.Open(cfg.image())
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if err := unix.Flock(int(image.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("a mounted layer can be locked: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- lockImage(image, unix.LOCK_SH) }()
	b.do(tree.Close)
	if err := <-waited; err != nil {
		t.Errorf("when it is unmounted: %v", err)
	}
	if err := RemoveLayer(cfg.image()); err != nil {
		t.Error(err)
	}
}

// A start that fails at any operation does not change the agent's files.
func TestFaultsKeepAKeptLayer(t *testing.T) {
	b := newBench(t)
	cfg := b.kept()
	broken := errors.New("broken")
	operations := 0
	for k := 0; ; k++ {
		operations = 0
		tree, err := b.again(cfg, func(operation int) error {
			if operations = operation + 1; operation == k {
				return broken
			}
			return nil
		})
		if err == nil {
			if got := b.must(tree, sandboxAgent, ofTheAgent); !strings.HasPrefix(got, "one\ns\n") {
				t.Errorf("after %d faults: %q", k, got)
			}
			b.do(tree.Discard)
			break
		}
		if !errors.Is(err, broken) {
			t.Fatalf("operation %d: %v", k, err)
		}
	}
	if operations < 8 {
		t.Errorf("only %d operations", operations)
	}
	if _, err := os.Stat(cfg.image()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("discarded, and still there: %v", err)
	}
}

// A power cut leaves the image as it is while it is mounted: it is checked, and the agent's
// files that were on the disk are there. An image that cannot be repaired is refused, and
// kept.
func TestLayerAfterAPowerCut(t *testing.T) {
	b := newBench(t)
	cfg := b.kept()
	tree, err := b.again(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.must(tree, sandboxAgent, "echo late >/workspace/late; sync /workspace/late; sync -f /workspace/late")
	cut := filepath.Join(b.dir, "cut.img")
	if out, err := hostCommand("cp", cfg.image(), cut); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.do(tree.Close)
	image, err := os.OpenFile(cut, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	var state [1]byte
	if _, err := image.ReadAt(state[:], stateAt); err != nil || state[0]&stateValid != 0 {
		t.Fatalf("control: the copy is clean (%v)", err)
	}
	waitForNoLoop(t, b.dir)
	if err := os.Rename(cut, cfg.image()); err != nil {
		t.Fatal(err)
	}
	if tree, err = b.again(cfg, nil); err != nil {
		t.Fatal(err)
	}
	if got := b.must(tree, sandboxAgent, ofTheAgent+" && cat /workspace/late"); !strings.HasSuffix(got, "late\n") {
		t.Errorf("after the cut: %q", got)
	}
	b.do(tree.Close)
	waitForNoLoop(t, b.dir)
	// The check cannot repair it by itself: the first group's inodes are lost.
	if _, err := image.WriteAt(make([]byte, 64<<10), 16<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := image.WriteAt([]byte{0}, stateAt); err != nil {
		t.Fatal(err)
	}
	if _, err := b.again(cfg, nil); !errors.Is(err, ErrLayerDamaged) {
		t.Errorf("a damaged layer: %v", err)
	}
	if err := RemoveLayer(cfg.image()); err != nil {
		t.Error(err)
	}
}

// A run begins with a copy of another run's layer: everything is there with its owners, what it
// adds is in its own layer only, and the original serves again. A copy of another size than the
// disk, or one that is not root's alone, is refused, and leaves nothing.
func TestARunBeginsWithACopy(t *testing.T) {
	b := newBench(t)
	cfg := b.kept()
	image, err := os.Open(cfg.image())
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	copied := filepath.Join(b.dir, "copy.img")
	if err := CopyLayer(image, copied); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"second", "third"} {
		next := cfg
		next.ID, next.HostID = id, testHostID+uint32(i+1)*idsPerAgent
		b.hostID = next.HostID
		tree, err := b.on(next, copied)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if got := b.must(tree, sandboxAgent, ofTheAgent); got != "one\ns\n1000:1000 700\n5:6 4755\n" {
			t.Errorf("%s finds %q", id, got)
		}
		b.must(tree, sandboxAgent, "test ! -e /home/agent/later && touch /home/agent/later && test -e /home/agent/later")
		b.do(tree.Discard)
		if _, err := os.Stat(next.image()); !os.IsNotExist(err) {
			t.Errorf("%s leaves its image: %v", id, err)
		}
	}
	other := cfg
	other.ID, other.DiskBytes = "other", cfg.DiskBytes*2
	if _, err := b.on(other, copied); err == nil || !strings.Contains(err.Error(), "and the disk of this run") {
		t.Errorf("another size: %v", err)
	}
	if _, err := os.Stat(other.image()); !os.IsNotExist(err) {
		t.Errorf("a refused start leaves its image: %v", err)
	}
	// A user other than root who could have written it might have made it to attack the kernel.
	other.DiskBytes = cfg.DiskBytes
	for _, change := range []func() error{func() error { return os.Chmod(copied, 0o620) }, func() error { return errors.Join(os.Chmod(copied, 0o600), os.Chown(copied, 1000, 0)) }} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.on(other, copied); err == nil || !strings.Contains(err.Error(), "not root's alone") {
			t.Errorf("an image that is not root's alone: %v", err)
		}
	}
	if err := RemoveLayer(cfg.image()); err != nil {
		t.Error(err)
	}
}

// on mounts a root whose layer begins with a copy of an image.
func (b *bench) on(cfg Config, image string) (tree *Tree, err error) {
	err = b.thread.Do(func() error {
		plan, err := NewPlan(cfg)
		if err == nil {
			tree, err = plan.OnCopyOf(image).Mount()
		}
		return err
	})
	return tree, err
}
