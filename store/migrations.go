package store

import (
	"fmt"
	"strconv"

	"go.etcd.io/bbolt"
)

// migration brings a file from the schema before it to schema "to".
type migration struct {
	to    int
	what  string // ends "cannot …" when it fails
	apply func(*bbolt.Tx) error
}

// migrations is every step there ever was, in order, without a gap. A released
// step is never changed: a change of schema, a renamed field of agent.Run
// among them, is a new step at the end.
var migrations = []migration{
	{to: 1, what: "make the buckets runs, names and leases", apply: makeBuckets(bucketRuns, bucketNames, bucketLeases)},
	{to: 2, what: "make the bucket occurrences", apply: makeBuckets(bucketEvents)},
	{to: 3, what: "key the names by owner", apply: keyNamesByOwner},
}

// migrate applies the steps that the file lacks. It runs in one transaction,
// so a file is never left between two schemas.
func (f format) migrate(tx *bbolt.Tx) error {
	version, err := f.schemaOf(tx)
	if err != nil {
		return err
	}
	for _, step := range f.steps {
		if step.to <= version {
			continue
		}
		if err := step.apply(tx); err != nil {
			return fmt.Errorf("cannot %s (schema %d): %w", step.what, step.to, err)
		}
		if err := f.setSchema(tx, step.to); err != nil {
			return fmt.Errorf("cannot note schema %d: %w", step.to, err)
		}
	}
	return nil
}

// setSchema makes the bucket meta with the first step: a new file has no bucket at all.
func (f format) setSchema(tx *bbolt.Tx, version int) error {
	meta, err := tx.CreateBucketIfNotExists(bucketMeta)
	if err != nil {
		return err
	}
	return meta.Put(f.version, []byte(strconv.Itoa(version)))
}

// makeBuckets fails for a bucket that is there already: then the version is not what the
// file's content says.
func makeBuckets(names ...[]byte) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		for _, name := range names {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	}
}
