package store

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

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
	// Indexes lead from words of the values to the values.
	Indexes []Index[V]
	// Bounds limit how many rows Put stores.
	Bounds []Bound[V]
	// OfRun means that each key begins with a run's id and "/". ForgetRun removes those of
	// its run.
	OfRun bool
}

// Index has a row for each word of each value: the word, a zero byte, the value's key. It
// contains nothing that the values do not. Put, Delete and OpenKernel keep it.
type Index[V any] struct {
	// Bucket is the name of the index's bucket.
	Bucket string
	// Words returns the words of a value, each of 1 to 64 bytes without a zero byte.
	Words func(*V) []string
}

// Bound limits how many rows of a table share a prefix of their keys, or a word of an index.
type Bound[V any] struct {
	// Most is the highest number of rows that share what Of returns.
	Most int
	// Index is the bucket of the index whose word is shared; "": a prefix of the key is.
	Index string
	// Of returns the shared prefix or word.
	Of func(*V) string
	// Error returns what Put fails with for a value if there are has rows already.
	Error func(v *V, has int) error
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
	if len(b.Indexes)+len(b.Bounds) > 0 {
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
		var before []string
		if old != nil {
			before = i.Words(old)
		}
		err = firstError(err, i.move(t, key, before, i.Words(v)))
	}
	return err
}

// keyOf returns the key of v, or an error if that or a word of v is not valid.
func (b Table[V]) keyOf(v *V) (string, error) {
	key := b.Key(v)
	if key == "" || b.OfRun && !ownerRun(key).Valid() {
		return "", wrongKey(b.Bucket, key)
	}
	for _, i := range b.Indexes {
		for _, word := range i.Words(v) {
			if !soundWord(word) {
				return "", wrongKey(i.Bucket, word)
			}
		}
	}
	return key, nil
}

// inBounds returns the error of a bound that v would exceed. A row that stays where it is
// counted takes no more room.
func (b Table[V]) inBounds(t *KernelTx, old, v *V) error {
	for _, bound := range b.Bounds {
		shared := bound.Of(v)
		if old != nil && bound.Of(old) == shared {
			continue
		}
		bucket, prefix := b.Bucket, []byte(shared)
		if bound.Index != "" {
			bucket, prefix = bound.Index, indexKey(shared, "")
		}
		has, err := t.count([]byte(bucket), prefix, bound.Most)
		if err != nil {
			return err
		}
		if has >= bound.Most {
			return bound.Error(v, has)
		}
	}
	return nil
}

// Delete removes the row of a key; one that is not there is no error.
func (b Table[V]) Delete(t *KernelTx, key string) error {
	if len(b.Indexes) == 0 {
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
		err = firstError(err, i.move(t, key, i.Words(v), nil))
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

// Indexed returns the values that have a word in an index, in the order of their keys. index
// is the bucket of one of the table's indexes.
func (b Table[V]) Indexed(t *KernelTx, index, word string) (all []*V, err error) {
	prefix := string(indexKey(word, ""))
	rows, err := t.below([]byte(index), prefix)
	for _, r := range rows {
		v, err := b.Get(t, strings.TrimPrefix(string(r.key), prefix))
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

// move writes the difference between the words that the value of key had and those that it has.
func (i Index[V]) move(t *KernelTx, key string, before, after []string) (err error) {
	for _, word := range before {
		if !slices.Contains(after, word) {
			err = firstError(err, t.delete([]byte(i.Bucket), indexKey(word, key)))
		}
	}
	for _, word := range after {
		if !slices.Contains(before, word) {
			err = firstError(err, t.put([]byte(i.Bucket), indexKey(word, key), nil))
		}
	}
	return err
}

func indexKey(word, key string) []byte { return []byte(word + "\x00" + key) }

// soundWord reports whether text can be part of a key of an index.
func soundWord(text string) bool {
	return text != "" && len(text) <= maxID && !strings.Contains(text, "\x00")
}

// runPrefix is where the keys of a run's rows begin.
func runPrefix(run agent.ID) string { return string(run) + "/" }

// ownerRun returns the run to which a key of a table of runs belongs.
func ownerRun(key string) agent.ID {
	run, _, _ := strings.Cut(key, "/")
	return agent.ID(run)
}

// values returns what a table's method found without pointers.
func values[V any](found []*V, err error) ([]V, error) {
	var all []V
	for _, v := range found {
		all = append(all, *v)
	}
	return all, err
}
