package store

import (
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/grant"
)

// maxGrants bounds the grants that a run holds.
const maxGrants = 1024

var grants = Table[grant.Grant]{
	Bucket: string(bucketGrants),
	Noun:   "grant",
	Key: func(g *grant.Grant) string {
		if !soundWord(g.ID) {
			return ""
		}
		return g.ID
	},
	Sound: func(g *grant.Grant) error { _, err := g.Scope(); return err },
	Indexes: []Index[grant.Grant]{
		{Bucket: string(bucketHolders), Words: func(g *grant.Grant) []string { return []string{g.Holder} },
			Bound: Bound[grant.Grant]{maxGrants, tooManyGrants}},
		{Bucket: string(bucketDerived), Words: func(g *grant.Grant) []string {
			if g.Parent == "" {
				return nil
			}
			return []string{g.Parent}
		}},
	},
}

func tooManyGrants(g *grant.Grant) error {
	return &agent.Error{Kind: agent.KindConflict, Step: "grant", Message: fmt.Sprintf("%s holds %d grants", g.Holder, maxGrants), Hint: "revoke some: clove grant revoke"}
}

// Grant returns the grant with this id, and nil where there is none.
func (t *KernelTx) Grant(id string) (*grant.Grant, error) { return grants.Get(t, id) }

// GrantsOf returns what a holder has, in the order of the ids.
func (t *KernelTx) GrantsOf(holder string) ([]grant.Grant, error) {
	return values(grants.Indexed(t, string(bucketHolders), holder))
}

// DerivedFrom returns the grants whose parent is id, and not those derived from these.
func (t *KernelTx) DerivedFrom(id string) ([]grant.Grant, error) {
	return values(grants.Indexed(t, string(bucketDerived), id))
}

// PutGrant stores a grant. Its parent must be there. A grant that is there already keeps
// its holder and its parent. It writes nothing where the holder has maxGrants others:
// the error is of KindConflict.
func (t *KernelTx) PutGrant(g grant.Grant) error {
	old, err := t.Grant(g.ID)
	if err != nil {
		return err
	}
	if old != nil && (old.Holder != g.Holder || old.Parent != g.Parent) {
		return fmt.Errorf("grant %s has another holder or parent", g.ID)
	}
	if old == nil && g.Parent != "" {
		if parent, err := t.get(bucketGrants, []byte(g.Parent)); err != nil || parent == nil {
			return firstError(err, fmt.Errorf("the parent %q of grant %s is not there", g.Parent, g.ID))
		}
	}
	return grants.replace(t, old, &g)
}

// DeleteGrant removes a grant and all that were derived from it, and returns them, each
// before those derived from it. One that is not there is no error.
func (t *KernelTx) DeleteGrant(id string) (deleted []grant.Grant, err error) {
	g, err := t.Grant(id)
	if err != nil || g == nil {
		return nil, err
	}
	below, err := t.DerivedFrom(id)
	if err != nil {
		return nil, err
	}
	deleted = append(deleted, *g)
	for _, child := range below {
		more, err := t.DeleteGrant(child.ID)
		if err != nil {
			return nil, err
		}
		deleted = append(deleted, more...)
	}
	return deleted, grants.remove(t, id, g)
}
