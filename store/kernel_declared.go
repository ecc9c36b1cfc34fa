package store

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// Declared is a table of any type of values.
type Declared interface {
	// buckets are the names of the rows' bucket and then of the indexes and sums.
	buckets() []string
	// fill writes the rows of an index or a sum that was just made.
	fill(t *KernelTx, bucket string) error
	// check reports what is wrong with the rows and the indexes.
	check(*kernelAudit)
	// forget removes the rows that belong to a run.
	forget(*KernelTx, agent.ID) error
}

func (b Table[V]) buckets() []string {
	names := []string{b.Bucket}
	for _, i := range b.Indexes {
		names = append(names, i.Bucket)
	}
	for _, s := range b.Sums {
		names = append(names, s.Bucket)
	}
	return names
}

func (b Table[V]) fill(t *KernelTx, bucket string) error {
	index := slices.IndexFunc(b.Indexes, func(i Index[V]) bool { return i.Bucket == bucket })
	sum := slices.IndexFunc(b.Sums, func(s Sum[V]) bool { return s.Bucket == bucket })
	if index < 0 && sum < 0 {
		return nil
	}
	rows, err := t.below([]byte(b.Bucket), "")
	for _, r := range rows {
		// A row that cannot be read must not keep cloved from its start. Check reports it.
		v, broken := b.decode(r)
		switch {
		case broken != nil:
		case index >= 0:
			err = cmp.Or(err, b.Indexes[index].move(t, string(r.key), nil, b.Indexes[index].Terms(v)))
		default:
			err = cmp.Or(err, b.Sums[sum].move(t, nil, v))
		}
	}
	return err
}

func (b Table[V]) forget(t *KernelTx, run agent.ID) error {
	if !b.OfRun {
		return nil
	}
	rows, err := t.below([]byte(b.Bucket), RunKey(run, ""))
	for _, r := range rows {
		err = cmp.Or(err, b.Delete(t, string(r.key)))
	}
	return err
}

// byteRows declares buckets that are no Table: their values are bytes which need not be JSON, or
// their keys are numbers that the store gives. kernel_check.go has what Check asks of them.
type byteRows struct {
	names []string
	ofRun bool // as in Table
}

func (b byteRows) buckets() []string            { return b.names }
func (b byteRows) fill(*KernelTx, string) error { return nil }
func (b byteRows) check(*kernelAudit)           {}
func (b byteRows) forget(t *KernelTx, run agent.ID) (err error) {
	for _, name := range b.names {
		if b.ofRun {
			err = cmp.Or(err, t.deleteBelow([]byte(name), RunKey(run, "")))
		}
	}
	return err
}

// deleteBelow removes all rows whose key begins with prefix.
func (t *KernelTx) deleteBelow(bucket []byte, prefix string) error {
	rows, err := t.below(bucket, prefix)
	for _, r := range rows {
		err = cmp.Or(err, t.delete(bucket, r.key))
	}
	return err
}

// bucketsOf returns the names of all buckets of tables.
func bucketsOf(tables []Declared) (names [][]byte) {
	for _, d := range tables {
		for _, name := range d.buckets() {
			names = append(names, []byte(name))
		}
	}
	return names
}

// declaring returns the format with the buckets of more tables.
func (f format) declaring(tables []Declared) (format, error) {
	f.buckets = slices.Clone(f.buckets)
	for _, name := range bucketsOf(tables) {
		if f.declares(name) {
			return f, fmt.Errorf("cannot open a file in which two tables declare the bucket %s", name)
		}
		f.buckets = append(f.buckets, name)
	}
	return f, nil
}

func (f format) declares(bucket []byte) bool {
	return slices.ContainsFunc(f.buckets, func(known []byte) bool { return bytes.Equal(known, bucket) })
}

// noteKey is the key in meta of a bucket that no migration made.
func noteKey(bucket []byte) []byte { return append([]byte("bucket/"), bucket...) }

// noted reports whether a clove that declares the bucket has made it in this file.
func noted(tx *bbolt.Tx, bucket []byte) bool {
	meta := tx.Bucket(bucketMeta)
	return meta != nil && meta.Get(noteKey(bucket)) != nil
}

// makeTables makes and notes the buckets that tables declare and the file has not had yet. One
// that is noted and missing is damage, and stays so.
func (t *KernelTx) makeTables(tables []Declared) error {
	for _, d := range tables {
		for _, name := range d.buckets() {
			made, err := t.makeBucket([]byte(name))
			if err == nil && made {
				err = d.fill(t, name)
			}
			if err != nil {
				return fmt.Errorf("cannot make the bucket %s: %w", name, err)
			}
		}
	}
	return nil
}

func (t *KernelTx) makeBucket(name []byte) (made bool, err error) {
	defer t.edge(&err)
	if noted(t.tx, name) {
		return false, nil
	}
	t.wrote = true
	if _, err := t.tx.CreateBucketIfNotExists(name); err != nil {
		return false, err
	}
	return true, t.tx.Bucket(bucketMeta).Put(noteKey(name), []byte("made"))
}
