package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Sum adds up numbers of the values by group, so that they can be read without the values. Like an index it
// contains nothing that the values do not, and Put, Delete and OpenKernel keep it.
type Sum[V any] struct {
	// Bucket is the name of the sum's bucket.
	Bucket string
	// Of returns the group of a value, which is as a term of an index, and its numbers: as many as each other
	// value has. A value of the group "" is not counted.
	Of func(*V) (group string, numbers []int)
}

// Summed returns a sum of the table by group. A group of which all numbers are 0 is left out.
func (b Table[V]) Summed(t *KernelTx, sum string) (map[string][]int, error) {
	rows, err := t.below([]byte(sum), "")
	all := map[string][]int{}
	for _, r := range rows {
		numbers, err := numbersOf(r.value)
		if err != nil {
			return nil, fmt.Errorf("%w: %q of %s: %w", errDamaged, r.key, sum, err)
		}
		all[string(r.key)] = numbers
	}
	return all, err
}

func numbersOf(text []byte) (numbers []int, err error) {
	if text != nil {
		err = json.Unmarshal(text, &numbers)
	}
	return numbers, err
}

// move writes the difference between a value that was there and the one that is; nil: there is none.
func (s Sum[V]) move(t *KernelTx, before, after *V) (err error) {
	was, had := s.of(before)
	is, has := s.of(after)
	if was == is && slices.Equal(had, has) {
		return nil
	}
	if was == is {
		return s.add(t, is, plus(negative(had), has))
	}
	return cmp.Or(s.add(t, was, negative(had)), s.add(t, is, has))
}

func (s Sum[V]) of(v *V) (group string, numbers []int) {
	if v == nil {
		return "", nil
	}
	return s.Of(v)
}

func (s Sum[V]) add(t *KernelTx, group string, numbers []int) error {
	if group == "" {
		return nil
	}
	text, err := t.get([]byte(s.Bucket), []byte(group))
	if err != nil {
		return err
	}
	all, err := numbersOf(text)
	if err != nil {
		return fmt.Errorf("%w: %q of %s: %w", errDamaged, group, s.Bucket, err)
	}
	if all = plus(all, numbers); !slices.ContainsFunc(all, func(n int) bool { return n != 0 }) {
		return t.delete([]byte(s.Bucket), []byte(group))
	}
	return t.store([]byte(s.Bucket), group, all)
}

func negative(numbers []int) []int {
	all := slices.Clone(numbers)
	for i := range all {
		all[i] = -all[i]
	}
	return all
}

// plus adds numbers in their places.
func plus(a, b []int) []int {
	all := make([]int, max(len(a), len(b)))
	copy(all, a)
	for i, n := range b {
		all[i] += n
	}
	return all
}
