package names

import (
	"cmp"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
)

// ownerOf is the user whose names a user's call is about.
func ownerOf(c *service.Call, named *uint32) (uint32, error) {
	if named == nil || *named == c.UID {
		return c.UID, nil
	}
	if !c.Root() {
		return 0, api.Failure(api.CodeDenied, "leave the owner out", "only root names another user")
	}
	return *named, nil
}

func checkNamespace(namespace string) error {
	if namespace == "" {
		return nil
	}
	return agent.ValidateNamespace(namespace)
}

func (n Names) reserve(c *service.Call, p api.NameReserveParams) (result api.NameResult, out service.Outcome, err error) {
	out.About = p.Name
	owner, err := ownerOf(c, p.Owner)
	if err = cmp.Or(err, checkName(p.Name), checkTags(p.Tags), checkNamespace(p.Namespace), noQueue(p.Name)); err != nil {
		return result, out, err
	}
	if strings.HasPrefix(p.Name, topicsPrefix) {
		return result, out, api.Failure(api.CodeParams, "subscribers make a topic", "%.64q is a topic", p.Name)
	}
	r, err := get(c.Tx, owner, p.Namespace, p.Name)
	if err != nil {
		return result, out, err
	}
	if err := n.take(c, r, p.Manifest); err != nil {
		return result, out, err
	}
	r.Reserved, r.Tags, out.Owner = true, p.Tags, &owner
	if err := Rows.Put(c.Tx, r); err != nil {
		return result, out, err
	}
	return api.NameResult{Name: n.shown(c, r)}, out, nil
}

func (n Names) query(c *service.Call, p api.NameQueryParams) (result api.NameListResult, out service.Outcome, err error) {
	if _, err := ownerOf(c, p.Owner); err != nil {
		return result, out, err
	}
	result, err = n.part(c, "", p.After, func(a api.Name) bool {
		return (c.Root() || a.Owner == c.UID) && (p.Owner == nil || a.Owner == *p.Owner) && (p.Namespace == nil || a.Namespace == *p.Namespace) &&
			len(a.Name) >= len(p.Prefix) && a.Name[:len(p.Prefix)] == p.Prefix && tagged(a, p.Tag)
	})
	return result, out, err
}

func (n Names) remove(c *service.Call, p api.NameRemoveParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = p.Name
	owner, err := ownerOf(c, p.Owner)
	if err != nil {
		return none, out, err
	}
	r, err := Rows.Get(c.Tx, key(owner, p.Namespace, p.Name))
	switch {
	case err != nil:
		return none, out, err
	case r == nil:
		return none, out, noName(p.Name)
	case n.Removed != nil:
		err = n.Removed(c.Tx, owner, p.Namespace, p.Name)
	}
	n.changed(owner, &out)
	out.Owner = &owner
	return none, out, cmp.Or(err, Rows.Delete(c.Tx, Rows.Key(r)))
}
