package store

import (
	"cmp"
	"slices"
	"strings"
)

// Index has a row for each term of each value: the term, a zero byte, the value's key. It
// contains nothing that the values do not. Put, Delete and OpenKernel keep it.
type Index[V any] struct {
	// Bucket is the name of the index's bucket.
	Bucket string
	// Terms returns the terms of a value, each of 1 to 64 bytes without a zero byte.
	Terms func(*V) []string
	// Bound limits the values that share a term.
	Bound Bound[V]
}

// Bound limits how many rows share something. The zero value is no limit.
type Bound[V any] struct {
	// Most is the highest number of rows.
	Most int
	// Error returns what Put fails with for one more value.
	Error func(*V) error
}

// termsOf are the terms of a value; nil has none.
func (i Index[V]) termsOf(v *V) []string {
	if v == nil {
		return nil
	}
	return i.Terms(v)
}

// move writes the difference between the terms that the value of key had and those that it has.
func (i Index[V]) move(t *KernelTx, key string, before, after []string) (err error) {
	for _, term := range before {
		if !slices.Contains(after, term) {
			err = cmp.Or(err, t.delete([]byte(i.Bucket), indexKey(term, key)))
		}
	}
	for _, term := range after {
		if !slices.Contains(before, term) {
			err = cmp.Or(err, t.put([]byte(i.Bucket), indexKey(term, key), nil))
		}
	}
	return err
}

func indexKey(term, key string) []byte { return []byte(term + "\x00" + key) }

// soundTerm reports whether text can be part of a key of an index.
func soundTerm(text string) bool {
	return text != "" && len(text) <= maxID && !strings.Contains(text, "\x00")
}

// admits returns the bound's error if a bucket has the most rows with a prefix already.
func (l Bound[V]) admits(t *KernelTx, bucket, prefix string, v *V) error {
	if l.Most == 0 {
		return nil
	}
	has, err := t.count([]byte(bucket), []byte(prefix), l.Most)
	if err == nil && has >= l.Most {
		err = l.Error(v)
	}
	return err
}
