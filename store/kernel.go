package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// Kernel is the open kernel.db, which is for what agents share. The file is cloved's
// alone for as long as cloved lives; nothing else needs it. Its methods may be called
// from many goroutines.
type Kernel struct {
	database
	tables  []Declared
	commits commits
}

// OpenKernel opens the file at path, or creates it, and holds it until Close. The
// error is of KindBusy, and names the holder, if the file was not free within timeout.
//
// The file has the tables of this package and those that are passed. A bucket of theirs that
// it lacks is made, which needs no migration: a clove that does not declare the table opens
// the file too, and leaves the rows as they are.
func OpenKernel(path string, timeout time.Duration, tables ...Declared) (*Kernel, error) {
	f, err := kernelFormat.declaring(tables)
	if err != nil {
		return nil, explain(path, err)
	}
	k := &Kernel{commits: newCommits(), tables: slices.Concat(kernelTables, tables)}
	if err := k.open(path, f, timeout); err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		return k, nil
	}
	if err := k.Update(func(t *KernelTx) error { return t.makeTables(tables) }); err != nil {
		k.Close() // the first error is the one to return
		return nil, explain(k.path, err)
	}
	return k, nil
}

// Close waits for the changes that Update was called for, and releases the file. Update
// fails from then on.
func (k *Kernel) Close() error {
	k.commits.close()
	return k.database.Close()
}

// Backup writes a consistent copy of the file to the path to, which must not exist.
func (k *Kernel) Backup(to string) error { return k.copy(to, k.Check) }

// Read runs read in a transaction that sees what was committed, and cannot change it.
// Writers do not wait for it. An error of read is returned.
func (k *Kernel) Read(read func(*KernelTx) error) error {
	c := change{decide: read}
	err := k.view(func(tx *bbolt.Tx) error {
		t := k.transaction(tx)
		c.run(t)
		if c.panicked {
			panic(callerPanic{c.value})
		}
		return t.failed
	})
	return cmp.Or(err, k.explained(c.err))
}

// explained adds to the error of a caller's function what to do about a damaged row, and
// leaves every other one as it is.
func (k *Kernel) explained(err error) error {
	if errors.Is(err, errDamaged) {
		return explain(k.path, err)
	}
	return err
}

// KernelTx is a transaction of kernel.db. It is valid until the function that got it
// returns, and belongs to that function's goroutine. Its methods return copies.
type KernelTx struct {
	tx     *bbolt.Tx
	tables []Declared // of the file
	wrote  bool
	// failed is set where the file could not be read or written: whatever the function
	// makes of that, nothing of the transaction is kept.
	failed error
}

func (k *Kernel) transaction(tx *bbolt.Tx) *KernelTx { return &KernelTx{tx: tx, tables: k.tables} }

// bucket returns a bucket. That it is missing is damage, or its table was not passed to
// OpenKernel: edge makes an error of the panic.
func (t *KernelTx) bucket(name []byte) *bbolt.Bucket {
	bucket := t.tx.Bucket(name)
	if bucket == nil {
		panic(fmt.Sprintf("there is no bucket %s", name))
	}
	return bucket
}

// get returns the value of key, and nil where there is none.
func (t *KernelTx) get(bucket, key []byte) (value []byte, err error) {
	defer t.edge(&err)
	return bytes.Clone(t.bucket(bucket).Get(key)), nil
}

func (t *KernelTx) put(bucket, key, value []byte) (err error) {
	defer t.edge(&err)
	t.wrote = true
	return t.bucket(bucket).Put(key, value)
}

// delete removes key; one that is not there is no error.
func (t *KernelTx) delete(bucket, key []byte) (err error) {
	defer t.edge(&err)
	t.wrote = true
	return t.bucket(bucket).Delete(key)
}

// number returns the next number of bucket.
func (t *KernelTx) number(bucket []byte) (number uint64, err error) {
	defer t.edge(&err)
	t.wrote = true
	return t.bucket(bucket).NextSequence()
}

// row is a key with its value.
type row struct{ key, value []byte }

// rows returns the rows whose key begins with prefix, from the key on, at most limit of
// them. Their order is that of the keys. It reads no other rows.
func (t *KernelTx) rows(bucket, prefix, from []byte, limit int) (found []row, err error) {
	defer t.edge(&err)
	cursor := t.bucket(bucket).Cursor()
	for key, value := cursor.Seek(from); bytes.HasPrefix(key, prefix) && key != nil && len(found) < limit; key, value = cursor.Next() {
		found = append(found, row{bytes.Clone(key), bytes.Clone(value)})
	}
	return found, nil
}

// below returns all rows whose key begins with prefix.
func (t *KernelTx) below(bucket []byte, prefix string) ([]row, error) {
	return t.rows(bucket, []byte(prefix), []byte(prefix), math.MaxInt)
}

// count returns how many keys begin with prefix, at most limit.
func (t *KernelTx) count(bucket, prefix []byte, limit int) (n int, err error) {
	defer t.edge(&err)
	cursor := t.bucket(bucket).Cursor()
	for key, _ := cursor.Seek(prefix); bytes.HasPrefix(key, prefix) && key != nil && n < limit; key, _ = cursor.Next() {
		n++
	}
	return n, nil
}

// last returns the last row whose key begins with prefix; its key is nil where there
// is none.
func (t *KernelTx) last(bucket, prefix []byte) (last row, err error) {
	defer t.edge(&err)
	cursor := t.bucket(bucket).Cursor()
	var key, value []byte
	if after, _ := cursor.Seek(append(bytes.Clone(prefix), 0xff)); after == nil {
		key, value = cursor.Last()
	} else {
		key, value = cursor.Prev()
	}
	if !bytes.HasPrefix(key, prefix) {
		return row{}, nil
	}
	return row{bytes.Clone(key), bytes.Clone(value)}, nil
}
