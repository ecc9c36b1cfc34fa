package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"
)

// schema2Run is as much of a stored run as schema 3 changes. agent.Run may have
// changed since; a released migration must not change with it.
type schema2Run struct {
	Spec struct {
		Name  string   `json:"name"`
		After []string `json:"after"`
	} `json:"spec"`
	Owner struct {
		UID uint32 `json:"uid"`
	} `json:"owner"`
	id []byte
}

// keyNamesByOwner makes the index of names anew, with the owner in each key. Until schema 2
// a name was one run's alone, whichever user owned it, so a run of root's could come after another
// user's run by its bare name. From schema 3 on that name means root's own run, so it is
// written with its owner.
func keyNamesByOwner(tx *bbolt.Tx) error {
	runs := tx.Bucket(bucketRuns)
	all, err := schema2Runs(runs)
	if err != nil {
		return err
	}
	if err := tx.DeleteBucket(bucketNames); err != nil {
		return err
	}
	names, err := tx.CreateBucket(bucketNames)
	if err != nil {
		return err
	}
	owners := map[string]uint32{}
	for _, run := range all {
		owners[run.Spec.Name] = run.Owner.UID
		if err := names.Put(fmt.Appendf(nil, "%d/%s", run.Owner.UID, run.Spec.Name), run.id); err != nil {
			return err
		}
	}
	for _, run := range all {
		if run.Owner.UID != 0 {
			continue // a user's run comes after runs of the same user alone
		}
		if err := qualifyAfter(runs, run, owners); err != nil {
			return err
		}
	}
	return nil
}

// schema2Runs reads all runs first: bbolt does not allow changes while it iterates.
func schema2Runs(runs *bbolt.Bucket) (all []schema2Run, err error) {
	err = runs.ForEach(func(id, value []byte) error {
		run := schema2Run{id: bytes.Clone(id)}
		if err := json.Unmarshal(value, &run); err != nil {
			return fmt.Errorf("%w: run %q: %w", errDamaged, id, err)
		}
		all = append(all, run)
		return nil
	})
	return all, err
}

// qualifyAfter writes those of the names in run's spec.after that are not root's
// with their owner, and every other field as it was.
func qualifyAfter(runs *bbolt.Bucket, run schema2Run, owners map[string]uint32) error {
	changed := false
	for i, name := range run.Spec.After {
		if uid := owners[name]; uid != 0 {
			run.Spec.After[i], changed = fmt.Sprintf("%d/%s", uid, name), true
		}
	}
	if !changed {
		return nil
	}
	// As raw JSON, not as agent.Run: fields that this build does not know stay as they are.
	var stored, spec map[string]json.RawMessage
	err := json.Unmarshal(runs.Get(run.id), &stored)
	if err == nil {
		err = json.Unmarshal(stored["spec"], &spec)
	}
	if err == nil {
		spec["after"], err = json.Marshal(run.Spec.After)
	}
	if err == nil {
		stored["spec"], err = json.Marshal(spec)
	}
	if err != nil {
		return err
	}
	value, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return runs.Put(run.id, value)
}
