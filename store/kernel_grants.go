package store

import (
	"cmp"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/grant"
)

// maxGrants bounds the grants that a run holds.
const maxGrants = 1024

// Grants is the table of grants.
var Grants = GrantTable{Table[grant.Grant]{
	Bucket: string(bucketGrants),
	Noun:   "grant",
	Key: func(g *grant.Grant) string {
		if !soundTerm(g.ID) {
			return ""
		}
		return g.ID
	},
	Sound: func(g *grant.Grant) error { _, err := g.Scope(); return err },
	Indexes: []Index[grant.Grant]{
		{Bucket: string(bucketHolders), Terms: func(g *grant.Grant) []string { return []string{g.Holder} },
			Bound: Bound[grant.Grant]{maxGrants, tooManyGrants}},
		{Bucket: string(bucketDerived), Terms: func(g *grant.Grant) []string {
			if g.Parent == "" {
				return nil
			}
			return []string{g.Parent}
		}},
	},
}}

// GrantTable is the type of Grants. Its Put and Delete keep the tree of grants whole.
type GrantTable struct{ Table[grant.Grant] }

func tooManyGrants(g *grant.Grant) error {
	return &agent.Error{Kind: agent.KindConflict, Step: "grant", Message: fmt.Sprintf("%s holds %d grants", g.Holder, maxGrants), Hint: "revoke some: clove grant revoke"}
}

// HeldBy returns the grants of a holder, in the order of their ids.
func (b GrantTable) HeldBy(t *KernelTx, holder string) ([]*grant.Grant, error) {
	return b.Indexed(t, string(bucketHolders), holder)
}

// Put stores a grant. Its parent must be there. A grant that is there already keeps its holder and
// its parent. It writes nothing where the holder has maxGrants others: the error is of
// KindConflict.
func (b GrantTable) Put(t *KernelTx, g *grant.Grant) error {
	old, err := b.Get(t, g.ID)
	if err != nil {
		return err
	}
	if old != nil && (old.Holder != g.Holder || old.Parent != g.Parent) {
		return fmt.Errorf("grant %s has another holder or parent", g.ID)
	}
	if old == nil && g.Parent != "" {
		if parent, err := b.Get(t, g.Parent); err != nil || parent == nil {
			return cmp.Or(err, fmt.Errorf("the parent %q of grant %s is not there", g.Parent, g.ID))
		}
	}
	return b.replace(t, old, g)
}

// Delete removes a grant and all that were derived from it, and returns them, each before
// those derived from it. One that is not there is no error.
func (b GrantTable) Delete(t *KernelTx, id string) (deleted []*grant.Grant, err error) {
	g, err := b.Get(t, id)
	if err != nil || g == nil {
		return nil, err
	}
	derived, err := b.Indexed(t, string(bucketDerived), id)
	if err != nil {
		return nil, err
	}
	deleted = append(deleted, g)
	for _, child := range derived {
		more, err := b.Delete(t, child.ID)
		if err != nil {
			return nil, err
		}
		deleted = append(deleted, more...)
	}
	return deleted, b.remove(t, id, g)
}
