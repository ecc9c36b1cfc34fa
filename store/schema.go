package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// The file, schema 3. Names in <> are keys that vary; → is a value.
//
//	meta
//	├── schema                   → "3", decimal
//	└── drained                  → "yes"; absent: cloved starts queued runs
//	runs
//	└── <id>                     → agent.Run as JSON
//	names
//	└── <uid>/<name>             → id of the one run, live or ended, of this owner that has it
//	leases
//	└── <range: 4 bytes, big endian> → id of the live run that has it
//	occurrences                  (its bbolt sequence: the last number given)
//	└── <number: 8 bytes, big endian> → agent.RunEvent as JSON; the last maxEvents
//
// names and leases are indexes: each says nothing that a run does not say, and
// each is written in the transaction that writes the run. Big endian makes the
// order of the keys the order of the ranges, so the lowest gap is found by
// walking them once. Check compares all of it.
var (
	bucketMeta   = []byte("meta")
	bucketRuns   = []byte("runs")
	bucketNames  = []byte("names")
	bucketLeases = []byte("leases")
	bucketEvents = []byte("occurrences") // released under this name
)

// tables are the buckets of one transaction.
type tables struct {
	tx     *bbolt.Tx
	runs   *bbolt.Bucket
	names  *bbolt.Bucket
	leases *bbolt.Bucket
	events *bbolt.Bucket
	forgot bool // a run was removed: its text is to be erased
}

// tablesOf looks once for all buckets, so that no method has to expect a nil one.
func tablesOf(tx *bbolt.Tx) (*tables, error) {
	t := &tables{tx: tx, runs: tx.Bucket(bucketRuns), names: tx.Bucket(bucketNames), leases: tx.Bucket(bucketLeases),
		events: tx.Bucket(bucketEvents)}
	if t.runs == nil || t.names == nil || t.leases == nil || t.events == nil {
		return nil, fmt.Errorf("%w: a bucket of its schema is missing", errDamaged)
	}
	return t, nil
}

// get returns the run of id, or nil where there is none.
func (t *tables) get(id []byte) (*agent.Run, error) {
	value := t.runs.Get(id)
	if value == nil {
		return nil, nil
	}
	return decode(id, value)
}

// put stores the run's JSON and nothing else. The caller keeps the indexes and logs the
// event in the same transaction.
func (t *tables) put(run agent.Run) error {
	value, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("cannot encode run %s: %w", run.Spec.ID, err)
	}
	return t.runs.Put([]byte(run.Spec.ID), value)
}

// putName enters the run's name in the index.
func (t *tables) putName(run agent.Run) error {
	return t.names.Put(nameKey(run.Name()), []byte(run.Spec.ID))
}

// nameKey is the key of a run's name in the index.
func nameKey(name agent.RunName) []byte { return []byte(name.String()) }

func decode(id, value []byte) (*agent.Run, error) {
	run := new(agent.Run)
	if err := json.Unmarshal(value, run); err != nil {
		return nil, fmt.Errorf("%w: run %q: %w", errDamaged, id, err)
	}
	return run, nil
}

// lowestFreeRange returns the first id range without a lease, or false when all are
// leased.
func (t *tables) lowestFreeRange() (int, bool) {
	free := 0
	for key := range each(t.leases.Cursor()) {
		if !bytes.Equal(key, rangeKey(free)) {
			break
		}
		free++
	}
	return free, free < agent.IDRanges
}

// rangeKey is big endian for lowestFreeRange, which walks the keys in order.
func rangeKey(index int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(index))
}

// rangeOf is the inverse of rangeKey; false where key is none.
func rangeOf(key []byte) (int, bool) {
	if len(key) != 4 {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(key)), true
}

// errForeign is of a bbolt file that is sound and of another program, or of another
// format of clove's.
var errForeign = errors.New("not a file of clove's")

// schemaOf returns the schema version of the file; 0 for one without a bucket.
func (f format) schemaOf(tx *bbolt.Tx) (int, error) {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		if first, _ := tx.Cursor().First(); first != nil {
			return 0, errForeign
		}
		return 0, nil
	}
	version, err := strconv.Atoi(string(meta.Get(f.version)))
	if err != nil || version < 1 {
		return 0, errForeign
	}
	return version, nil
}

// each ranges over all keys below cursor. The bucket must not change meanwhile, because
// bbolt may invalidate a cursor then. Keys and values are the page's memory: they end with
// the transaction.
func each(cursor *bbolt.Cursor) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
			if !yield(key, value) {
				return
			}
		}
	}
}
