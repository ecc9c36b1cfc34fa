package store

import (
	"fmt"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/grant"
)

// maxGrants bounds the grants that a run holds.
const maxGrants = 1024

// Grant returns the grant with this id, and nil where there is none.
func (t *KernelTx) Grant(id string) (*grant.Grant, error) {
	g := &grant.Grant{}
	found, err := t.load(bucketGrants, id, g)
	if err != nil || !found {
		return nil, err
	}
	return g, nil
}

// GrantsOf returns what a holder has, in the order of the ids.
func (t *KernelTx) GrantsOf(holder string) ([]grant.Grant, error) {
	return t.indexed(bucketHolders, holder)
}

// DerivedFrom returns the grants whose parent is id, and not those derived from these.
func (t *KernelTx) DerivedFrom(id string) ([]grant.Grant, error) {
	return t.indexed(bucketDerived, id)
}

// indexed returns the grants that an index has below a word.
func (t *KernelTx) indexed(index []byte, word string) (all []grant.Grant, err error) {
	rows, err := t.below(index, word+"\x00")
	for _, r := range rows {
		g, err := t.Grant(string(r.key[len(word)+1:]))
		if err == nil && g == nil {
			err = fmt.Errorf("%w: no grant for %q of %s", errDamaged, r.key, index)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, *g)
	}
	return all, err
}

// PutGrant stores a grant. Its parent must be there. A grant that is there already keeps
// its holder and its parent. It writes nothing where the holder has maxGrants others:
// the error is of KindConflict.
func (t *KernelTx) PutGrant(g grant.Grant) error {
	if !soundWord(g.ID) || !soundWord(g.Holder) || g.Parent != "" && !soundWord(g.Parent) {
		return wrongKey("a grant", g.ID)
	}
	old, err := t.Grant(g.ID)
	if err != nil {
		return err
	}
	if old != nil && (old.Holder != g.Holder || old.Parent != g.Parent) {
		return fmt.Errorf("grant %s has another holder or parent", g.ID)
	}
	if old == nil {
		if err := t.mayEnter(g); err != nil {
			return err
		}
	}
	err = firstError(t.store(bucketGrants, g.ID, g), t.put(bucketHolders, indexKey(g.Holder, g.ID), nil))
	if err == nil && g.Parent != "" {
		err = t.put(bucketDerived, indexKey(g.Parent, g.ID), nil)
	}
	return err
}

// mayEnter returns an error if a new grant cannot be stored.
func (t *KernelTx) mayEnter(g grant.Grant) error {
	if g.Parent != "" {
		if parent, err := t.get(bucketGrants, []byte(g.Parent)); err != nil || parent == nil {
			return firstError(err, fmt.Errorf("the parent %q of grant %s is not there", g.Parent, g.ID))
		}
	}
	held, err := t.count(bucketHolders, []byte(g.Holder+"\x00"), maxGrants)
	if err != nil || held < maxGrants {
		return err
	}
	return &agent.Error{Kind: agent.KindConflict, Step: "grant", Message: fmt.Sprintf("%s holds %d grants", g.Holder, held), Hint: "revoke some: clove grant revoke"}
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
	err = firstError(t.delete(bucketGrants, []byte(id)), t.delete(bucketHolders, indexKey(g.Holder, id)))
	if err == nil && g.Parent != "" {
		err = t.delete(bucketDerived, indexKey(g.Parent, id))
	}
	return deleted, err
}

func indexKey(word, id string) []byte { return []byte(word + "\x00" + id) }

// soundWord reports whether text can be part of a key of an index.
func soundWord(text string) bool {
	return text != "" && len(text) <= maxID && !strings.Contains(text, "\x00")
}
