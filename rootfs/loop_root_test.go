//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A container's /dev may have loop-control and no loop devices.
func TestLoopWithoutDeviceNodes(t *testing.T) {
	b := newBench(t)
	empty := b.mkdir("dev", map[string]string{"loop-control": "", "null": ""})
	b.do(func() error {
		for _, name := range []string{"loop-control", "null"} {
			if err := unix.Mount("/dev/"+name, filepath.Join(empty, name), "", unix.MS_BIND, ""); err != nil {
				return err
			}
		}
		return unix.Mount(empty, "/dev", "", unix.MS_BIND|unix.MS_REC, "")
	})
	tree := b.mount(testConfig(b.dir))
	b.must(tree, sandboxAgent, "echo x >/tmp/a")
	b.do(func() error {
		left, err := filepath.Glob(filepath.Join(b.dir, "run/mnt/loop*"))
		if err == nil && len(left) > 0 {
			t.Errorf("device nodes are left: %q", left)
		}
		return err
	})
}

// The file must be empty while it is attached: its dirty pages would be flushed to the disk,
// see layerOp.
func TestFilledAfterAttachingIsWhatIsRead(t *testing.T) {
	b := newBench(t)
	path := filepath.Join(b.dir, "state/image")
	image, err := newImage(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	defer image.Close()
	device, err := attachLoop(image, false, b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if err := holdOff(device); err != nil {
		t.Fatal(err)
	}
	at := func(offset int64) byte {
		var one [1]byte
		if _, err := device.ReadAt(one[:], offset); err != nil {
			t.Fatal(err)
		}
		return one[0]
	}
	// When the host probes a new device it may empty its cache at any moment: of a few places at
	// least one must still be cached.
	places, kept := []int64{1 << 12, 1 << 14, 1 << 16, 1 << 17, 1 << 18, 1 << 19}, 0
	for _, place := range places {
		if at(place) != 0 {
			t.Fatal("a hole does not read as zero")
		}
		if _, err := image.WriteAt([]byte{7}, place); err != nil {
			t.Fatal(err)
		}
		if at(place) == 0 {
			kept++
		}
	}
	if kept == 0 {
		t.Error("control: the device's cache never kept the hole")
	}
	if err := forget(device); err != nil {
		t.Fatal(err)
	}
	for _, place := range places {
		if got := at(place); got != 7 {
			t.Errorf("the device reads %d at %d, want 7", got, place)
		}
	}
}
