package names

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// Bounds of names.
const (
	nameMost     = 128  // bytes of a name
	namesMost    = 1024 // of one namespace
	heldMost     = 64   // that a run holds
	holdersMost  = 64   // of a name
	tagsMost     = 8
	tagMost      = 64 // bytes
	namesInPart  = 40
	topicsPrefix = "topic/"
	queuesPrefix = "job/"
)

// Row is a name of a namespace.
type Row struct {
	Owner     uint32   `json:"owner"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Reserved  bool     `json:"reserved,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	Holders   []Holder `json:"holders,omitempty"` // the one whose turn is next comes first
	// Manifest is of what mail starts a run for a reserved name, held by Digest; empty: mail starts none.
	Manifest string `json:"manifest,omitempty"`
	Digest   string `json:"digest,omitempty"`
	// Waking says that a run is to be started, at NotBefore or later; Tries how many in a row were and left the mail.
	Waking    bool      `json:"waking,omitempty"`
	NotBefore time.Time `json:"not_before,omitzero"`
	Tries     int       `json:"tries,omitempty"`
	Turn      uint64    `json:"turn,omitempty"` // of the last start
	Why       string    `json:"why,omitempty"`  // why nothing starts
}

// Holder is a run that has a name.
type Holder struct {
	Run   agent.ID  `json:"run"`
	Tags  []string  `json:"tags,omitempty"`
	Since time.Time `json:"since"`
}

// byRun is the index of names by the runs that hold them.
const byRun = "names-by-run"

// Rows is the table of names.
var Rows = store.Table[Row]{
	Bucket: "names", Noun: "name",
	Key: func(r *Row) string { return key(r.Owner, r.Namespace, r.Name) },
	Sound: func(r *Row) error {
		if checkName(r.Name) != nil || len(r.Holders) > holdersMost || !r.Reserved && len(r.Holders) == 0 || (r.Manifest == "") != (r.Digest == "") {
			return errors.New("it is no name, or nothing holds it")
		}
		return nil
	},
	Bound: store.Bound[Row]{Most: namesMost, Error: func(*Row) error {
		return api.Failure(api.CodeBusy, "release some", "the namespace has %d names", namesMost)
	}},
	Indexes: []store.Index[Row]{{Bucket: byRun, Terms: runsOf, Bound: store.Bound[Row]{Most: heldMost, Error: func(*Row) error {
		return api.Failure(api.CodeBusy, "release some", "the run holds %d names", heldMost)
	}}}, {Bucket: withManifest, Terms: startedTerms}},
}

func runsOf(r *Row) (runs []string) {
	for _, h := range r.Holders {
		runs = append(runs, string(h.Run))
	}
	return runs
}

// below is what the keys of a namespace's names begin with.
func below(owner uint32, namespace string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", owner, namespace))
	return hex.EncodeToString(sum[:16]) + "/"
}

func key(owner uint32, namespace, name string) string { return below(owner, namespace) + name }

// put stores a row, or removes one that nothing keeps.
func put(tx *store.KernelTx, r *Row) error {
	if !r.Reserved && len(r.Holders) == 0 {
		return Rows.Delete(tx, Rows.Key(r))
	}
	return Rows.Put(tx, r)
}

// without removes a run from the holders, and reports whether it was one.
func (r *Row) without(run agent.ID) bool {
	before := len(r.Holders)
	r.Holders = slices.DeleteFunc(r.Holders, func(h Holder) bool { return h.Run == run })
	return len(r.Holders) < before
}

// Forget takes from a run the names that it has held since before a moment, zero: all; and returns these, with
// what is left of each.
func Forget(tx *store.KernelTx, run agent.ID, until time.Time) (gone []*Row, err error) {
	held, err := Rows.Indexed(tx, byRun, string(run))
	for _, r := range held {
		at := slices.IndexFunc(r.Holders, func(h Holder) bool { return h.Run == run })
		if until.IsZero() || !r.Holders[at].Since.After(until) {
			r.without(run)
			gone, err = append(gone, r), cmp.Or(err, put(tx, r))
		}
	}
	return gone, err
}
