package store

import (
	"cmp"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A check beside writers finds nothing wrong: it sees the file between two commits.
func TestKernelCheckBesideWriters(t *testing.T) {
	t.Parallel()
	k, err := OpenKernel(filepath.Join(t.TempDir(), "kernel.db"), time.Second)
	must(t, err)
	defer k.Close()
	var writers sync.WaitGroup
	end := make(chan struct{})
	for range 4 {
		writers.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				err := k.Update(func(tx *KernelTx) error {
					number, err := AuditQueue.Add(tx, []byte("entry"))
					return cmp.Or(err, AuditQueue.DeleteUpTo(tx, number))
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 200 {
		if problems, err := k.Check(); err != nil || len(problems) > 0 {
			t.Errorf("%q, %v", problems, err)
			break
		}
	}
	close(end)
	writers.Wait()
}
