package store

import (
	"bytes"
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
	wanted, rows := map[string]map[string]bool{}, map[string]int{}
	for key, value := range a.rows([]byte(b.Bucket)) {
		a.tooMany(rows, b.Bucket, firstPart(string(key)), b.Bound.Most)
		v, err := b.decode(row{key, value})
		if err != nil {
			a.problem("%s %q: %v", b.Noun, key, err)
			continue
		}
		if err := b.broken(string(key), v); err != nil {
			a.problem("%s %q: %v", b.Noun, key, err)
		}
		b.expect(wanted, string(key), v)
	}
	for _, i := range b.Indexes {
		a.index(i.Bucket, b.Noun, i.Bound.Most, wanted[i.Bucket])
	}
}

// tooMany counts a row that shares something with others, and reports the first one above a
// bound; 0: there is none.
func (a *kernelAudit) tooMany(rows map[string]int, bucket, shared string, most int) {
	if rows[shared]++; most > 0 && rows[shared] == most+1 {
		a.problem("%s: there are more than %d of %q", bucket, most, shared)
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
	if b.OfRun && !isRun(key) {
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
		for _, term := range i.Terms(v) {
			wanted[i.Bucket][string(indexKey(term, key))] = true
		}
	}
}

// index holds an index against what the values say, both ways.
func (a *kernelAudit) index(bucket, noun string, most int, wanted map[string]bool) {
	rows := map[string]int{}
	for key := range a.rows([]byte(bucket)) {
		if !wanted[string(key)] {
			a.problem("index %s: %q is of no %s", bucket, key, noun)
		}
		delete(wanted, string(key))
		term, _, _ := bytes.Cut(key, []byte{0})
		a.tooMany(rows, bucket, string(term), most)
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
