package names

import (
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Names is the service.
type Names struct {
	// Run returns a run by its id; nil: there is only the caller's.
	Run func(agent.ID) (agent.Run, bool)
	// Removed is called before a name is removed, and may refuse it; nil: nothing does.
	Removed func(tx *store.KernelTx, owner uint32, namespace, name string) error
	// Registered is called when a run holds a name from now on; nil: nothing follows.
	Registered func(c *service.Call, name string, out *service.Outcome) error
	// Changed is touched when a name of an owner may mean other runs; nil: nothing waits for that.
	Changed func(owner uint32) service.Topic
	// Starter starts runs for names, and Due has Begin called at a time; nil: mail starts none.
	Starter Starter
	Due     func(at time.Time)
	// Waits reports whether mail that is to wake a name waits for it.
	Waits func(tx *store.KernelTx, owner uint32, namespace, name string) (bool, error)
}

// Service returns its methods.
func (n Names) Service() *service.Service {
	covers := func(p api.NameRegisterParams) []string { return []string{string(grant.Name) + ":" + p.Name} }
	return service.New("name", Rows).On(
		service.Write(agents.NameRegister, service.Stages[api.NameRegisterParams]{Covers: covers, About: func(p api.NameRegisterParams) string { return p.Name }}, n.register),
		service.Write(agents.NameRelease, service.Stages[api.NameParams]{}, n.release),
		service.Read(agents.NameLookup, service.Stages[api.NameLookupParams]{}, n.lookup),
		service.Read(agents.NameList, service.Stages[api.NameListParams]{}, n.list),
		service.Write(methods.NameReserve, service.Stages[api.NameReserveParams]{}, n.reserve),
		service.Read(methods.NameQuery, service.Stages[api.NameQueryParams]{}, n.query),
		service.Write(methods.NameRemove, service.Stages[api.NameRemoveParams]{}, n.remove),
	)
}

// checkName refuses what cannot be a name: it would mean something else as a receiver of mail.
func checkName(name string) error {
	scope, err := grant.NewScope(grant.Name, name, grant.NoRights)
	if err != nil || !scope.Concrete() || len(name) > nameMost || name == "parent" || agent.ID(name).Valid() {
		return api.Failure(api.CodeParams, "use at most 128 letters, digits and _.-/@+, and no run's id", "%.64q is no name", name)
	}
	return nil
}

// noQueue refuses the name of a queue of jobs.
func noQueue(name string) error {
	if !strings.HasPrefix(name, queuesPrefix) {
		return nil
	}
	return api.Failure(api.CodeParams, "call job.claim", "%.64q is a queue of jobs", name)
}

func checkTags(tags []string) error {
	wrong := func(tag string) bool { return tag == "" || len(tag) > tagMost || agent.ValidateName(tag) != nil }
	if len(tags) > tagsMost || slices.ContainsFunc(tags, wrong) {
		return api.Failure(api.CodeParams, "", "a name has at most %d tags, each of letters, digits and _.-", tagsMost)
	}
	return nil
}

// of returns a name of the namespace of the call's run, which may be new.
func of(c *service.Call, name string) (*Row, error) {
	return get(c.Tx, c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, name)
}

func get(tx *store.KernelTx, owner uint32, namespace, name string) (*Row, error) {
	r, err := Rows.Get(tx, key(owner, namespace, name))
	if r == nil {
		r = &Row{Owner: owner, Namespace: namespace, Name: name}
	}
	return r, err
}

func (n Names) register(c *service.Call, p api.NameRegisterParams) (result api.NameResult, out service.Outcome, err error) {
	if strings.HasPrefix(p.Name, topicsPrefix) {
		return result, out, api.Failure(api.CodeParams, "call mail.subscribe", "%.64q is a topic", p.Name)
	}
	if err := noQueue(p.Name); err != nil {
		return result, out, err
	}
	r, err := n.hold(c, p.Name, p.Tags)
	if err != nil {
		return result, out, err
	}
	if n.Registered != nil {
		err = n.Registered(c, p.Name, &out)
	}
	n.changed(c.Run.Owner.UID, &out)
	out.About, result.Name = p.Name, n.shown(c, r)
	return result, out, err
}

// hold gives the call's run a name, or other tags for one that it has.
func (n Names) hold(c *service.Call, name string, tags []string) (*Row, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	r, err := of(c, name)
	if err != nil {
		return nil, err
	}
	own := Holder{Run: c.Run.Spec.ID, Tags: tags, Since: c.Now.UTC()}
	at := slices.IndexFunc(r.Holders, func(h Holder) bool { return h.Run == own.Run })
	switch {
	case at >= 0:
		r.Holders[at].Tags = tags
	case len(r.Holders) == holdersMost:
		return nil, api.Failure(api.CodeBusy, "take another name", "%d runs hold %s", holdersMost, name)
	default:
		r.Holders = append(r.Holders, own)
	}
	return r, Rows.Put(c.Tx, r)
}

// Join gives the call's run a name.
func (n Names) Join(c *service.Call, name string) error {
	_, err := n.hold(c, name, nil)
	return err
}

func (n Names) live(c *service.Call, id agent.ID) (run agent.Run, lives bool) {
	if id == c.Run.Spec.ID || n.Run == nil {
		return c.Run, id == c.Run.Spec.ID
	}
	run, found := n.Run(id)
	return run, found && run.State != agent.StateEnded
}

func (n Names) release(c *service.Call, p api.NameParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = p.Name
	n.changed(c.Run.Owner.UID, &out)
	return none, out, n.Leave(c, p.Name)
}

func (n Names) changed(owner uint32, out *service.Outcome) {
	if n.Changed != nil {
		out.Topics = append(out.Topics, n.Changed(owner))
	}
}

// Leave takes a name from the call's run.
func (n Names) Leave(c *service.Call, name string) error {
	r, err := of(c, name)
	if err != nil {
		return err
	}
	if !r.without(c.Run.Spec.ID) {
		return api.Failure(api.CodeNotFound, "a name ends with its run, or when it is released", "the run does not hold the name %.64q", name)
	}
	return put(c.Tx, r)
}

// shown is a name as callers see it.
func (n Names) shown(c *service.Call, r *Row) api.Name {
	a := api.Name{Owner: r.Owner, Namespace: r.Namespace, Name: r.Name, Reserved: r.Reserved, Tags: r.Tags, Manifest: r.Manifest, Digest: r.Digest, Why: r.Why, Holders: []api.NameHolder{}}
	for _, h := range r.Holders {
		if run, lives := n.live(c, h.Run); lives {
			a.Holders = append(a.Holders, api.NameHolder{Run: h.Run, Name: run.Spec.Name, Tags: h.Tags, Since: h.Since})
		}
	}
	return a
}

// exists reports whether there is a name for callers: a run that is gone may still stand in its row.
func exists(a api.Name) bool { return a.Reserved || len(a.Holders) > 0 }

// Holders are the live runs that hold a name, in the order of their turns, and whether it is reserved.
func (n Names) Holders(c *service.Call, owner uint32, namespace, name string) (runs []agent.Run, reserved bool, err error) {
	r, err := get(c.Tx, owner, namespace, name)
	for _, h := range r.Holders {
		if run, lives := n.live(c, h.Run); lives {
			runs = append(runs, run)
		}
	}
	return runs, r.Reserved, err
}

// Took notes that a run has had its turn.
func (n Names) Took(c *service.Call, owner uint32, namespace, name string, run agent.ID) error {
	r, err := get(c.Tx, owner, namespace, name)
	at := slices.IndexFunc(r.Holders, func(h Holder) bool { return h.Run == run })
	if err != nil || at < 0 || len(r.Holders) == 1 {
		return err
	}
	last := r.Holders[at]
	r.Holders = append(slices.Delete(r.Holders, at, at+1), last)
	return Rows.Put(c.Tx, r)
}

// Of are the names that a run holds.
func (n Names) Of(tx *store.KernelTx, run agent.ID) (names []string, err error) {
	held, err := Rows.Indexed(tx, byRun, string(run))
	for _, r := range held {
		names = append(names, r.Name)
	}
	return names, err
}

func noName(name string) error {
	return api.Failure(api.CodeNotFound, "name.list has those of the namespace", "no name %.64q", name)
}

func (n Names) lookup(c *service.Call, p api.NameLookupParams) (result api.NameResult, out service.Outcome, err error) {
	r, err := of(c, p.Name)
	if err == nil {
		if result.Name = n.shown(c, r); !exists(result.Name) {
			err = noName(p.Name)
		}
	}
	return result, out, err
}

func (n Names) list(c *service.Call, p api.NameListParams) (result api.NameListResult, out service.Outcome, err error) {
	prefix := below(c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace)
	result, err = n.part(c, prefix+p.Prefix, prefix+p.After, func(a api.Name) bool { return tagged(a, p.Tag) })
	result.Next = strings.TrimPrefix(result.Next, prefix)
	return result, out, err
}

// tagged reports whether a name or a holder of it has a tag; each has the empty one.
func tagged(a api.Name, tag string) bool {
	return tag == "" || slices.Contains(a.Tags, tag) || slices.ContainsFunc(a.Holders, func(h api.NameHolder) bool { return slices.Contains(h.Tags, tag) })
}

// part is a part of the names whose keys begin with prefix, behind after, as far as chosen wants them.
func (n Names) part(c *service.Call, prefix, after string, chosen func(api.Name) bool) (result api.NameListResult, err error) {
	result.Names = []api.Name{}
	for {
		page, next, err := Rows.Page(c.Tx, prefix, after, namesInPart-len(result.Names))
		for _, r := range page {
			if a := n.shown(c, r); exists(a) && chosen(a) {
				result.Names = append(result.Names, a)
			}
		}
		if after = next; err != nil || next == "" || len(result.Names) == namesInPart {
			result.Next = next
			return result, err
		}
	}
}
