package state

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
)

// aboutUsers says in the audit log what a call of a user is about.
func aboutUsers[P any](at func(P) (api.StateOf, string)) service.Stages[P] {
	return service.Stages[P]{About: func(p P) string {
		of, path := at(p)
		text := pathOf(api.StatePath{StateWhere: api.StateWhere{Scope: api.StateNamespace}, Path: path})
		if of.Name != "" {
			text = pathOf(api.StatePath{StateWhere: api.StateWhere{Name: of.Name}, Path: path})
		}
		if of.Namespace != "" {
			text += " in " + of.Namespace
		}
		return text
	}}
}

// ofUser is a method that a user calls about a scope of its own, and root about any.
func ofUser[P, R any](at func(P) (api.StateOf, string), do func(*service.Call, lease.Of, P) (R, service.Outcome, error)) func(*service.Call, P) (R, service.Outcome, error) {
	return func(c *service.Call, p P) (none R, out service.Outcome, err error) {
		named, _ := at(p)
		of, err := userScope(c.UID, named)
		if err != nil {
			return none, out, err
		}
		result, out, err := do(c, of, p)
		out.Owner = &of.Owner
		return result, out, err
	}
}

// userScope is the scope that a user means.
func userScope(uid uint32, named api.StateOf) (of lease.Of, err error) {
	of = lease.Of{Owner: uid, Namespace: named.Namespace, Kind: lease.OfNamespace}
	if named.Owner != nil {
		of.Owner = *named.Owner
	}
	if named.Name != "" {
		of.Kind, of.Name = lease.OfName, named.Name
		err = agent.ValidateName(named.Name)
	}
	if named.Namespace != "" && err == nil {
		err = agent.ValidateNamespace(named.Namespace)
	}
	switch {
	case err != nil:
		err = api.Failure(api.CodeParams, "use those that runs have, for example acme/research", "%v", err)
	case uid != 0 && of.Owner != uid:
		err = api.Failure(api.CodeDenied, "leave the owner out", "only root sees keys of other users").By("", api.RuleMethods)
	}
	return of, err
}
