package spawn

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Child is a run that an agent has started, as it is kept below its parent.
type Child struct {
	Parent   agent.ID   `json:"parent"`
	ID       agent.ID   `json:"id"`
	Above    []agent.ID `json:"above"`          // the parent first
	Run      string     `json:"run"`            // the run's name
	Name     string     `json:"name,omitempty"` // what its parent calls it
	Manifest string     `json:"manifest"`
	Digest   string     `json:"digest"`
	// DiskBytes are of its parent's disk while it lives.
	DiskBytes int64     `json:"disk_bytes,omitempty"`
	Created   time.Time `json:"created"`
	// Queue is the run as it is to be queued; nil: it has been.
	Queue *agent.Run `json:"queue,omitempty"`
	End   *End       `json:"end,omitempty"` // nil: it has not ended for good
	// For is what clove has started it for, for its parent, as in Start; with its standard input, until it is queued.
	For   string          `json:"for,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	Blob  *api.Blob       `json:"blob,omitempty"`
}

// End is how a child ended.
type End struct {
	Record agent.Record `json:"record"`
	Output string       `json:"output,omitempty"`
	// Result is what it gave with agent.result, set when the end is kept: a run that is removed with its
	// end has no row of its own any more.
	Result json.RawMessage `json:"result,omitempty"`
}

// childrenMost bounds the children of one run, with those that have ended.
const childrenMost = 1024

// childIDs is the index by which a child is found without its parent.
const childIDs = "child_ids"

// childrenFor is the index of those that clove has started for their parents, and its term.
const childrenFor = "children_for"

// Children is their table.
var Children = store.Table[Child]{
	Bucket: "children", Noun: "child", OfRun: true,
	Key: func(k *Child) string { return store.RunKey(k.Parent, string(k.ID)) },
	Sound: func(k *Child) error {
		if len(k.Above) == 0 || k.Above[0] != k.Parent || !k.ID.Valid() {
			return errors.New("its runs above are not those of a child")
		}
		return nil
	},
	Indexes: []store.Index[Child]{{Bucket: childIDs, Terms: func(k *Child) []string { return []string{string(k.ID)} }},
		{Bucket: childrenFor, Terms: func(k *Child) []string {
			if k.For == "" {
				return nil
			}
			return []string{childrenFor}
		}}},
	Bound: store.Bound[Child]{Most: childrenMost, Error: func(k *Child) error {
		return api.Failure(api.CodeBusy, "start the agent anew: clove restart forgets them", "%s has had %d children", k.Parent, childrenMost)
	}},
}

// result is what a run gives to what started it.
type result struct {
	Run   agent.ID        `json:"run"`
	Value json.RawMessage `json:"value"`
}

// Results is the table of results.
var Results = store.Table[result]{
	Bucket: "results", Noun: "result", OfRun: true,
	Key: func(r *result) string { return store.RunKey(r.Run, "result") },
}

// Tables are those of the service.
func Tables() []store.Declared { return []store.Declared{Manifests, Children, Results, Starts} }

// of returns a run's child by its id; nil: it is none.
func of(tx *store.KernelTx, id agent.ID) (*Child, error) {
	found, err := Children.Indexed(tx, childIDs, string(id))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// Child returns the child to which the agent of a call gave a name; false: there is none.
func (s *Spawn) Child(c *service.Call, name string) (agent.ID, bool) {
	if !c.Agent || agent.ID(name).Valid() {
		return "", false
	}
	k, err := find(c, name)
	if err != nil {
		return "", false
	}
	return k.ID, true
}

// find returns the descendant of the calling agent that a reference means: an id, or the name that the
// agent gave a child. A run that is no descendant is reported as one that does not exist.
func find(c *service.Call, reference string) (*Child, error) {
	own := c.Run.Spec.ID
	if agent.ID(reference).Valid() {
		k, err := of(c.Tx, agent.ID(reference))
		if err != nil || k != nil && slices.Contains(k.Above, own) {
			return k, err
		}
		return nil, noChild(reference)
	}
	all, err := Children.Below(c.Tx, store.RunKey(own, ""))
	if err != nil {
		return nil, err
	}
	var last *Child
	for _, k := range all {
		if reference != "" && (k.Name == reference || k.Run == reference) && (last == nil || k.Created.After(last.Created)) {
			last = k
		}
	}
	if last == nil {
		return nil, noChild(reference)
	}
	return last, nil
}

func noChild(reference string) error {
	return api.Failure(api.CodeNotFound, "agent.list shows the children, agent.tree all below them", "no child %.64q", reference).By("", api.RuleOwnRun)
}

// shown is a child as callers see it.
func (s *Spawn) shown(k *Child) api.Child {
	a := api.Child{ID: k.ID, Run: k.Run, Name: k.Name, Parent: k.Parent, Manifest: k.Manifest, Digest: k.Digest, Created: k.Created, State: agent.StateQueued}
	if run, found := s.runs().Get(k.ID); found {
		a.State = run.State
	}
	if k.End != nil {
		a.State, a.Status, a.ExitCode = agent.StateEnded, string(k.End.Record.Status), &k.End.Record.ExitCode
	}
	return a
}

// childrenOf are the children of the call's run.
func (s *Spawn) childrenOf(c *service.Call, p api.ChildListParams) (result api.ChildListResult, out service.Outcome, err error) {
	all, err := childrenOf(c.Tx, c.Run.Spec.ID)
	if err == nil {
		result = s.page(all, p.After)
	}
	return result, out, err
}

// childrenOf are the children of a run, the oldest first.
func childrenOf(tx *store.KernelTx, run agent.ID) ([]*Child, error) {
	all, err := Children.Below(tx, store.RunKey(run, ""))
	slices.SortFunc(all, func(a, b *Child) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(string(a.ID), string(b.ID)))
	})
	return all, err
}

// HasChildren reports whether a run has children that have not ended.
func HasChildren(tx *store.KernelTx, run agent.ID) (bool, error) {
	all, err := childrenOf(tx, run)
	return slices.ContainsFunc(all, func(k *Child) bool { return k.End == nil }), err
}

// tree are all runs below the call's, each behind its parent.
func (s *Spawn) tree(c *service.Call, p api.ChildListParams) (result api.ChildListResult, out service.Outcome, err error) {
	all, err := below(c.Tx, c.Run.Spec.ID)
	if err == nil {
		result = s.page(all, p.After)
	}
	return result, out, err
}

// below are the descendants of a run, each behind its parent.
func below(tx *store.KernelTx, run agent.ID) (all []*Child, err error) {
	first, err := childrenOf(tx, run)
	for _, k := range first {
		next, lower := below(tx, k.ID)
		all, err = append(append(all, k), next...), cmp.Or(err, lower)
	}
	return all, err
}

// page is a part of a list. after is the id of the last one before.
func (s *Spawn) page(all []*Child, after string) (result api.ChildListResult) {
	result.Children = []api.Child{}
	at := slices.IndexFunc(all, func(k *Child) bool { return string(k.ID) == after }) + 1
	for i, k := range all[at:] {
		if i == inAnswer {
			result.Next = string(all[at+i-1].ID)
			break
		}
		result.Children = append(result.Children, s.shown(k))
	}
	return result
}
