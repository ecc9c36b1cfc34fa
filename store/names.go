package store

import (
	"fmt"

	"clove.run/clove/agent"
)

// checkNew rejects a run whose id or name the indexes cannot have.
func checkNew(run agent.Run) error {
	if !run.Spec.ID.Valid() {
		return broken("%q is not an id", run.Spec.ID)
	}
	if err := checkName(run.Spec); err != nil {
		return err
	}
	if run.Record != nil {
		return broken("new run %s has a record", run.Spec.ID)
	}
	return nil
}

// checkName rejects a name that breaks the grammar, or that looks like another run's id.
func checkName(spec agent.Spec) error {
	if err := agent.ValidateName(spec.Name); err != nil {
		return err
	}
	if id := agent.ID(spec.Name); id.Valid() && id != spec.ID {
		return &agent.Error{Kind: agent.KindInvalid, Step: "name",
			Message: fmt.Sprintf("%q looks like the id of another run", id), Hint: "choose another --name"}
	}
	return nil
}

// nameFree rejects an id that a stored run has, and a name that one of the same
// owner has.
func (t *tables) nameFree(wanted agent.Run) error {
	if t.Has(wanted.Spec.ID) {
		return broken("run %s exists", wanted.Spec.ID)
	}
	holder, taken := t.Named(wanted.Name())
	if !taken {
		return nil
	}
	run, err := t.mustGet(holder)
	if err != nil {
		return err
	}
	conflict := &agent.Error{Kind: agent.KindConflict, Step: "name",
		Message: fmt.Sprintf("the name %q is taken by run %s, which is %s", run.Spec.Name, holder, run.State),
		Hint:    "choose another --name, or wait for its end"}
	if run.State == agent.StateEnded { // with its owner: root may have a run of that name too
		conflict.Hint = "choose another --name, or remove the old run: clove rm " + run.Name().For(0)
	}
	return conflict
}
