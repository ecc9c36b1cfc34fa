package store

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// check reports the rows that cannot be read, are not sound, are below a key that is not theirs
// or are too many, and compares the indexes with the values, both ways.
func (b Table[V]) check(a *kernelAudit) {
	wanted, sharing := map[string]map[string]bool{}, make([]map[string]int, len(b.Bounds))
	for key, value := range a.rows([]byte(b.Bucket)) {
		v, err := b.decode(row{key, value})
		if err != nil {
			a.problem("%s %q: %v", b.Noun, key, err)
			continue
		}
		if err := b.broken(string(key), v); err != nil {
			a.problem("%s %q: %v", b.Noun, key, err)
		}
		b.expect(wanted, string(key), v)
		b.share(a, sharing, v)
	}
	for _, i := range b.Indexes {
		a.index(i.Bucket, b.Noun, wanted[i.Bucket])
	}
}

// broken returns what is wrong with a row by itself.
func (b Table[V]) broken(key string, v *V) error {
	if b.Sound != nil {
		if err := b.Sound(v); err != nil {
			return err
		}
	}
	if own := b.Key(v); own != key {
		return fmt.Errorf("says that it is %q", own)
	}
	if b.OfRun && !ownerRun(key).Valid() {
		return errors.New("it is of no run")
	}
	return nil
}

// expect collects the rows that the indexes should have for a value.
func (b Table[V]) expect(wanted map[string]map[string]bool, key string, v *V) {
	for _, i := range b.Indexes {
		if wanted[i.Bucket] == nil {
			wanted[i.Bucket] = map[string]bool{}
		}
		for _, word := range i.Words(v) {
			wanted[i.Bucket][string(indexKey(word, key))] = true
		}
	}
}

// share counts a value in each bound, and reports the first one that is too many.
func (b Table[V]) share(a *kernelAudit, sharing []map[string]int, v *V) {
	for i, bound := range b.Bounds {
		if sharing[i] == nil {
			sharing[i] = map[string]int{}
		}
		shared := bound.Of(v)
		if sharing[i][shared]++; sharing[i][shared] == bound.Most+1 {
			a.problem("%s: there are more than %d of %q", b.Bucket, bound.Most, shared)
		}
	}
}

// index holds an index against what the values say, both ways.
func (a *kernelAudit) index(bucket, noun string, wanted map[string]bool) {
	for key := range a.rows([]byte(bucket)) {
		if !wanted[string(key)] {
			a.problem("index %s: %q is of no %s", bucket, key, noun)
		}
		delete(wanted, string(key))
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		a.problem("index %s: lacks %q", bucket, strings.ReplaceAll(key, "\x00", " "))
	}
}

// readable ranges over the keys and values of all rows that can be read: check reports the
// others.
func (b Table[V]) readable(a *kernelAudit) iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		for key, value := range a.rows([]byte(b.Bucket)) {
			if v, err := b.decode(row{key, value}); err == nil && !yield(string(key), v) {
				return
			}
		}
	}
}
