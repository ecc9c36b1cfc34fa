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
// or are too many, and compares the indexes and the sums with the values, both ways.
func (b Table[V]) check(a *kernelAudit) {
	wanted, rows, sums := map[string]map[string]bool{}, map[string]int{}, make([]map[string][]int, len(b.Sums))
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
		for i, s := range b.Sums {
			sums[i] = s.with(sums[i], v)
		}
	}
	for _, i := range b.Indexes {
		a.index(i.Bucket, b.Noun, i.Bound.Most, wanted[i.Bucket])
	}
	for i, s := range b.Sums {
		a.sum(s.Bucket, sums[i])
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

// with adds a value to what a sum should be.
func (s Sum[V]) with(all map[string][]int, v *V) map[string][]int {
	if all == nil {
		all = map[string][]int{}
	}
	if group, numbers := s.Of(v); group != "" {
		all[group] = plus(all[group], numbers)
	}
	return all
}

// sum holds a sum against what the values say, both ways.
func (a *kernelAudit) sum(bucket string, wanted map[string][]int) {
	for group, text := range a.rows([]byte(bucket)) {
		numbers, err := numbersOf(text)
		if want := wanted[string(group)]; err != nil || !slices.Equal(numbers, want) {
			a.problem("sum %s: %q has %s, the rows have %v", bucket, group, text, want)
		}
		delete(wanted, string(group))
	}
	for _, group := range slices.Sorted(maps.Keys(wanted)) {
		if slices.ContainsFunc(wanted[group], func(n int) bool { return n != 0 }) {
			a.problem("sum %s: lacks %q, of which the rows have %v", bucket, group, wanted[group])
		}
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
