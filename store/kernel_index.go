package store

import (
	"cmp"
	"slices"
	"strings"
)

// Index has a row for each word of each value: the word, a zero byte, the value's key. It
// contains nothing that the values do not. Put, Delete and OpenKernel keep it.
type Index[V any] struct {
	// Bucket is the name of the index's bucket.
	Bucket string
	// Words returns the words of a value, each of 1 to 64 bytes without a zero byte.
	Words func(*V) []string
	// Bound limits the values that share a word.
	Bound Bound[V]
}

// Bound limits how many rows share something. The zero value is no limit.
type Bound[V any] struct {
	// Most is the highest number of rows.
	Most int
	// Error returns what Put fails with for one more value.
	Error func(*V) error
}

// wordsOf are the words of a value; nil has none.
func (i Index[V]) wordsOf(v *V) []string {
	if v == nil {
		return nil
	}
	return i.Words(v)
}

// move writes the difference between the words that the value of key had and those that it has.
func (i Index[V]) move(t *KernelTx, key string, before, after []string) (err error) {
	for _, word := range before {
		if !slices.Contains(after, word) {
			err = cmp.Or(err, t.delete([]byte(i.Bucket), indexKey(word, key)))
		}
	}
	for _, word := range after {
		if !slices.Contains(before, word) {
			err = cmp.Or(err, t.put([]byte(i.Bucket), indexKey(word, key), nil))
		}
	}
	return err
}

func indexKey(word, key string) []byte { return []byte(word + "\x00" + key) }

// soundWord reports whether text can be part of a key of an index.
func soundWord(text string) bool {
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
