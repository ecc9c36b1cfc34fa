package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// maxKey bounds the bytes of a key, so that it also fits into the keys of an index.
const maxKey = bbolt.MaxKeySize - maxID - 1

// Table declares a bucket of kernel.db whose rows are values of one type, as JSON. A package
// declares its tables as variables and passes them to OpenKernel. From the declaration follow
// the methods below, the creation of the buckets, what Check examines and what ForgetRun
// removes. A table has no state.
type Table[V any] struct {
	// Bucket is the name of the bucket. No other table or index has the same.
	Bucket string
	// Noun names one row in messages: "grant".
	Noun string
	// Key returns the key of a value, and "" for one that cannot be stored.
	Key func(*V) string
	// Fill sets the fields that only the key contains. An error means that it is not a key of
	// this table. nil: all fields are in the JSON.
	Fill func(v *V, key string) error
	// Sound returns what is wrong with a stored value, for Check. Put does not call it. nil:
	// every value is sound.
	Sound func(*V) error
	// Indexes lead from terms of the values to the values.
	Indexes []Index[V]
	// Sums are kept of the values.
	Sums []Sum[V]
	// Bound limits the rows whose keys have the same first part, which ends with a "/", as
	// those of one run have. If keys have no "/", it limits all rows of the table.
	Bound Bound[V]
	// OfRun means that each key begins with a run's id and "/". ForgetRun removes those of
	// its run.
	OfRun bool
}

// Get returns the value of a key, and nil where there is none.
func (b Table[V]) Get(t *KernelTx, key string) (*V, error) {
	text, err := t.get([]byte(b.Bucket), []byte(key))
	if err != nil || text == nil {
		return nil, err
	}
	return b.decode(row{[]byte(key), text})
}

// Put stores a value below its key, in place of the one that is there. It writes nothing where
// the value cannot be stored or a bound is reached: the error is the bound's.
func (b Table[V]) Put(t *KernelTx, v *V) error {
	var old *V
	if len(b.Indexes) > 0 || len(b.Sums) > 0 || b.Bound.Most > 0 {
		var err error
		if old, err = b.Get(t, b.Key(v)); err != nil {
			return err
		}
	}
	return b.replace(t, old, v)
}

// replace is Put for a caller that has read the old value; nil: there is none.
func (b Table[V]) replace(t *KernelTx, old, v *V) error {
	key, err := b.keyOf(v)
	if err == nil {
		err = b.inBounds(t, old, v)
	}
	if err == nil {
		err = t.store([]byte(b.Bucket), key, v)
	}
	if err != nil {
		return err
	}
	for _, i := range b.Indexes {
		err = cmp.Or(err, i.move(t, key, i.termsOf(old), i.Terms(v)))
	}
	for _, s := range b.Sums {
		err = cmp.Or(err, s.move(t, old, v))
	}
	return err
}

// keyOf returns the key of v, or an error if that or a term of v is not valid.
func (b Table[V]) keyOf(v *V) (string, error) {
	key := b.Key(v)
	if key == "" || len(key) > maxKey || b.OfRun && !isRun(key) {
		return "", wrongKey(b.Bucket, key)
	}
	for _, i := range b.Indexes {
		for _, term := range i.Terms(v) {
			if !soundTerm(term) {
				return "", wrongKey(i.Bucket, term)
			}
		}
	}
	for _, s := range b.Sums {
		if group, _ := s.Of(v); group != "" && !soundTerm(group) {
			return "", wrongKey(s.Bucket, group)
		}
	}
	return key, nil
}

// inBounds returns the error of a bound that v would exceed. Values that old has already do not count again.
func (b Table[V]) inBounds(t *KernelTx, old, v *V) error {
	if old == nil {
		if err := b.Bound.admits(t, b.Bucket, firstPart(b.Key(v)), v); err != nil {
			return err
		}
	}
	for _, i := range b.Indexes {
		for _, term := range i.Terms(v) {
			if slices.Contains(i.termsOf(old), term) {
				continue
			}
			if err := i.Bound.admits(t, i.Bucket, term+"\x00", v); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete removes the row of a key; one that is not there is no error.
func (b Table[V]) Delete(t *KernelTx, key string) error {
	if len(b.Indexes) == 0 && len(b.Sums) == 0 {
		return t.delete([]byte(b.Bucket), []byte(key))
	}
	v, err := b.Get(t, key)
	if err != nil || v == nil {
		return err
	}
	return b.remove(t, key, v)
}

// remove is Delete for a caller that has read the value.
func (b Table[V]) remove(t *KernelTx, key string, v *V) error {
	err := t.delete([]byte(b.Bucket), []byte(key))
	for _, i := range b.Indexes {
		err = cmp.Or(err, i.move(t, key, i.Terms(v), nil))
	}
	for _, s := range b.Sums {
		err = cmp.Or(err, s.move(t, v, nil))
	}
	return err
}

// Below returns the values whose keys begin with prefix, in the order of the keys.
func (b Table[V]) Below(t *KernelTx, prefix string) ([]*V, error) {
	rows, err := t.below([]byte(b.Bucket), prefix)
	if err != nil {
		return nil, err
	}
	return b.decodeAll(rows)
}

// Each passes on all values, in the order of the keys.
func (b Table[V]) Each(t *KernelTx, each func(*V)) error {
	for after := ""; ; {
		page, next, err := b.Page(t, "", after, eachPage)
		for _, v := range page {
			each(v)
		}
		if after = next; err != nil || next == "" {
			return err
		}
	}
}

// eachPage bounds the values that Each has in memory at once.
const eachPage = 256

// Page returns at most limit values, and at least one if there are any, whose keys begin with
// prefix and are behind after, in the order of the keys. next is the after of the next page; it
// is "" with the last one.
func (b Table[V]) Page(t *KernelTx, prefix, after string, limit int) (page []*V, next string, err error) {
	limit = min(max(limit, 1), math.MaxInt-1)
	rows, err := t.rows([]byte(b.Bucket), []byte(prefix), []byte(max(prefix, after+"\x00")), limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(rows) > limit {
		rows, next = rows[:limit], string(rows[limit-1].key)
	}
	page, err = b.decodeAll(rows)
	return page, next, err
}

// Keys returns the keys of the values that have a term in an index, in their order. It reads none of the values.
func (b Table[V]) Keys(t *KernelTx, index, term string) (all []string, err error) {
	prefix := string(indexKey(term, ""))
	rows, err := t.below([]byte(index), prefix)
	for _, r := range rows {
		all = append(all, strings.TrimPrefix(string(r.key), prefix))
	}
	return all, err
}

// Indexed returns the values that have a term in an index, in the order of their keys. index
// is the bucket of one of the table's indexes.
func (b Table[V]) Indexed(t *KernelTx, index, term string) (all []*V, err error) {
	keys, err := b.Keys(t, index, term)
	for _, key := range keys {
		v, err := b.Get(t, key)
		if err == nil && v == nil {
			err = fmt.Errorf("%w: %q in %s is of no %s", errDamaged, key, index, b.Noun)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, err
}

// Count is how many values have a term in an index. It reads none of them.
func (b Table[V]) Count(t *KernelTx, index, term string) (int, error) {
	keys, err := b.Keys(t, index, term)
	return len(keys), err
}

// Ordered returns the values whose terms in an index begin with prefix, and are at most upTo where that is not
// empty: in the order of these terms and then of their keys, and not more than limit.
func (b Table[V]) Ordered(t *KernelTx, index, prefix, upTo string, limit int) (all []*V, err error) {
	rows, err := t.rows([]byte(index), []byte(prefix), []byte(prefix), limit)
	for _, r := range rows {
		term, key, _ := strings.Cut(string(r.key), "\x00")
		if upTo != "" && term > upTo {
			break
		}
		v, err := b.Get(t, key)
		if err == nil && v == nil {
			err = fmt.Errorf("%w: %q of %s is of no %s", errDamaged, r.key, index, b.Noun)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, err
}

func (b Table[V]) decode(r row) (*V, error) {
	v := new(V)
	err := json.Unmarshal(r.value, v)
	if err == nil && b.Fill != nil {
		err = b.Fill(v, string(r.key))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %q of %s: %w", errDamaged, r.key, b.Bucket, err)
	}
	return v, nil
}

func (b Table[V]) decodeAll(rows []row) (all []*V, err error) {
	for _, r := range rows {
		v, err := b.decode(r)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// RunKey returns the key of a run's row in a table that is OfRun; with "", the prefix of all.
func RunKey(run agent.ID, id string) string { return string(run) + "/" + id }

// firstPart returns what a key begins with, up to and with a "/"; "" where it has none.
func firstPart(key string) string { return key[:strings.IndexByte(key, '/')+1] }

// isRun reports whether the first part of a key is a run.
func isRun(key string) bool { return agent.ID(strings.TrimSuffix(firstPart(key), "/")).Valid() }
