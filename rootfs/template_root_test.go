//go:build root

package rootfs

import (
	"sync"
	"sync/atomic"
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
	stop, swept := make(chan struct{}), make(chan struct{})
	var removed atomic.Int64
	go func() {
		defer close(swept)
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
			removed.Add(int64(len(unused)))
		}
	}()
	began := time.Now()
	var makers sync.WaitGroup
	for range 3 {
		makers.Go(func() {
			// A busy machine may let the sweep run seldom.
			for i := 0; i < 10 || removed.Load() < 2 && time.Since(began) < time.Minute; i++ {
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
	if <-swept; removed.Load() < 2 {
		t.Errorf("only %d templates were removed meanwhile: nothing was tried", removed.Load())
	}
	if names, err := AbandonedTemplates(cfg.StateDir); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}
