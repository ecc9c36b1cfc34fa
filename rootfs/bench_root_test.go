//go:build root

package rootfs

import (
	"fmt"
	"testing"
	"time"

	"clove.run/clove/internal/nsthread"
	"golang.org/x/sys/unix"
)

// BenchmarkRoot plans, builds and discards a root with a workspace, and reports the time of
// each part.
func BenchmarkRoot(b *testing.B) {
	dir := benchDir(b)
	thread, err := nsthread.Start(unix.CLONE_NEWNS)
	if err != nil {
		b.Fatal(err)
	}
	defer thread.Close()
	cfg := testConfig(dir)
	cfg.DiskBytes, cfg.Workspace = 1<<30, dir+"/ws"
	var planned, mounted, discarded time.Duration
	runs := 0
	for b.Loop() {
		runs++
		cfg.ID = fmt.Sprintf("bench-%d", runs)
		err := thread.Do(func() error {
			start := time.Now()
			plan, err := NewPlan(cfg)
			if err != nil {
				return err
			}
			planned += time.Since(start)
			start = time.Now()
			tree, err := plan.Mount()
			if err != nil {
				return err
			}
			mounted += time.Since(start)
			start = time.Now()
			defer func() { discarded += time.Since(start) }()
			return tree.Discard()
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for name, total := range map[string]time.Duration{"plan": planned, "mount": mounted, "discard": discarded} {
		b.ReportMetric(float64(total.Microseconds())/float64(runs), "µs/"+name)
	}
}
