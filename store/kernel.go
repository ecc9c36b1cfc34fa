package store

import (
	"time"

	"go.etcd.io/bbolt"
)

// Kernel is the open kernel.db, which is for what agents share. The file is cloved's
// alone for as long as cloved lives; nothing else needs it. Its methods may be called
// from many goroutines.
type Kernel struct{ database }

// kernelFormat is that of kernel.db, schema 1:
//
//	meta
//	└── kernel                   → "1", decimal
var kernelFormat = format{version: []byte("kernel"), buckets: [][]byte{bucketMeta}, held: "try again; cloved keeps it for as long as it lives, and process %s has it now",
	// The first step makes no bucket: setSchema makes meta.
	steps: []migration{{to: 1, what: "make the file", apply: func(*bbolt.Tx) error { return nil }}}}

// OpenKernel opens the file at path, or creates it, and holds it until Close. The
// error is of KindBusy, and names the holder, if the file was not free within timeout.
func OpenKernel(path string, timeout time.Duration) (*Kernel, error) {
	k := &Kernel{}
	if err := k.open(path, kernelFormat, timeout); err != nil {
		return nil, err
	}
	return k, nil
}

// Check returns everything in the file that should not be, in words; nothing
// when it is sound. The error says that the file could not be read at all.
func (k *Kernel) Check() (problems []string, err error) {
	err = k.view(func(tx *bbolt.Tx) error {
		problems = append(k.format.problems(tx), pageProblems(tx)...)
		return nil
	})
	return problems, err
}

// Backup writes a consistent copy of the file to the path to, which must not exist.
func (k *Kernel) Backup(to string) error { return k.copy(to, k.Check) }
