//go:build root

package rootfs

import (
	"sync"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
)

// TestSweepingDisturbsNoMaker: templates are made and opened while another goroutine sweeps,
// which takes every finished template for unused. Each opened template is complete.
func TestSweepingDisturbsNoMaker(t *testing.T) {
	testhost.Root(t)
	cfg := testConfig(t.TempDir())
	blank := newTemplate(cfg, templateRootfs, rootfsSkeleton())
	stop, swept := make(chan struct{}), make(chan int)
	go func() {
		removed := 0
		defer func() { swept <- removed }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			abandoned, unused, err := SweepTemplates(cfg.StateDir, time.Now().Add(2*templateKept))
			if err != nil || len(abandoned) > 0 {
				t.Errorf("swept %v of living makers, %v", abandoned, err)
			}
			removed += len(unused)
		}
	}()
	var makers sync.WaitGroup
	for range 3 {
		makers.Go(func() {
			for range 10 {
				file, err := blank.open()
				if err != nil {
					t.Error(err)
					return
				}
				var magic [2]byte // in the superblock, at 1024+56: ext4(5)
				if _, err := file.ReadAt(magic[:], 1080); err != nil || magic != [2]byte{0x53, 0xef} {
					t.Errorf("no file system: %x, %v", magic, err)
				}
				file.Close()
			}
		})
	}
	makers.Wait()
	close(stop)
	if removed := <-swept; removed < 2 {
		t.Errorf("only %d templates were removed meanwhile: nothing was tried", removed)
	}
	if names, err := AbandonedTemplates(cfg.StateDir); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}
