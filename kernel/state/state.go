package state

import (
	"cmp"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Blobs has values that are kept apart. It is as mail.Blobs.
type Blobs interface {
	Held(c *service.Call, owner uint32, digest string) (*api.Blob, error)
}

// State is the service.
type State struct{ Blobs Blobs }

// Service returns its methods.
func (s State) Service() *service.Service {
	topic := func(c *service.Call, p api.StateWatchParams) service.Topic {
		of, _ := scopeOf(c.Run, p.StateWhere) // watch refuses a wrong one
		return topicOf(of, p.Path)
	}
	return service.New("state", Tables()...).On(
		service.Read(agents.StateGet, stages(grant.ReadOnly, api.StateGetParams.At), inRun(api.StateGetParams.At, get)),
		service.Write(agents.StateSet, stages(grant.ReadWrite, api.StateSetParams.At), inRun(api.StateSetParams.At, s.set)),
		service.Write(agents.StateDelete, stages(grant.ReadWrite, api.StateDeleteParams.At), inRun(api.StateDeleteParams.At, remove)),
		service.Read(agents.StateList, stages(grant.ReadOnly, api.StateListParams.At), inRun(api.StateListParams.At, list)),
		service.Wait(agents.StateWatch, stages(grant.ReadOnly, api.StateWatchParams.At), topic, inRun(api.StateWatchParams.At, watch)),
		service.Read(methods.StateQuery, aboutUsers(api.StateQueryParams.At), ofUser(api.StateQueryParams.At, func(c *service.Call, of lease.Of, p api.StateQueryParams) (api.StateListResult, service.Outcome, error) {
			return list(c, of, api.StateListParams{Path: p.Path, After: p.After})
		})),
		service.Read(methods.StateRead, aboutUsers(api.StateReadParams.At), ofUser(api.StateReadParams.At, func(c *service.Call, of lease.Of, p api.StateReadParams) (api.StateResult, service.Outcome, error) {
			return get(c, of, api.StateGetParams{StatePath: api.StatePath{Path: p.Path}})
		})),
		service.Write(methods.StateWrite, aboutUsers(api.StateWriteParams.At), ofUser(api.StateWriteParams.At, func(c *service.Call, of lease.Of, p api.StateWriteParams) (api.StateSetResult, service.Outcome, error) {
			return s.set(c, of, api.StateSetParams{StatePath: api.StatePath{Path: p.Path}, StateIf: p.StateIf, Value: p.Value, Blob: p.Blob, ExpiresMS: p.ExpiresMS})
		})),
		service.Write(methods.StateRemove, aboutUsers(api.StateRemoveParams.At), ofUser(api.StateRemoveParams.At, func(c *service.Call, of lease.Of, p api.StateRemoveParams) (api.StateDeleteResult, service.Outcome, error) {
			return remove(c, of, api.StateDeleteParams{StatePath: api.StatePath{Path: p.Path}, StateIf: p.StateIf})
		})),
	)
}

// inRun is a method that a run calls about a scope that it is in.
func inRun[P, R any](at func(P) api.StatePath, do func(*service.Call, lease.Of, P) (R, service.Outcome, error)) func(*service.Call, P) (R, service.Outcome, error) {
	return func(c *service.Call, p P) (none R, out service.Outcome, err error) {
		of, err := scopeOf(c.Run, at(p).StateWhere)
		if err != nil {
			return none, out, err
		}
		return do(c, of, p)
	}
}

// Covers is what a grant must cover for a key that a run reads.
func Covers(at api.StatePath) []string {
	return stages(grant.ReadOnly, api.StatePath.At).Covers(at)
}

// Holder is the holder of blobs that a key is which a run names.
func Holder(c *service.Call, named api.StatePath) (string, error) {
	of, err := scopeOf(c.Run, named.StateWhere)
	return holder(of.ID(), named.Path), cmp.Or(err, checkPath(named.Path))
}

// Holders are those of all keys of a run's own.
func Holders(run agent.Run) string { return holder(lease.RunBox(run.Owner.UID, run.Spec.ID).ID(), "") }

// stages require a grant for what is shared with other runs.
func stages[P any](rights grant.Rights, named func(P) api.StatePath) service.Stages[P] {
	about := func(p P) string { return pathOf(named(p)) }
	return service.Stages[P]{About: about, Covers: func(p P) []string {
		where := named(p).StateWhere
		if _, err := scopeOf(agent.Run{}, where); err != nil || kindOf(where) == api.StateRun {
			return nil // the method itself refuses what is no scope
		}
		return []string{string(grant.State) + ":/" + about(p) + ":" + string(rights)}
	}}
}

func topicOf(of lease.Of, path string) service.Topic {
	return service.Topic("state/" + at(of.ID(), path))
}

// scopeOf is the scope that a run means.
func scopeOf(run agent.Run, named api.StateWhere) (lease.Of, error) {
	of := lease.Of{Owner: run.Owner.UID, Namespace: run.Spec.Kernel.Namespace, Kind: lease.OfNamespace}
	switch scope := kindOf(named); {
	case scope == api.StateName:
		of.Kind, of.Name = lease.OfName, named.Name
		if err := agent.ValidateName(named.Name); err != nil {
			return of, api.Failure(api.CodeParams, `say which, as "name":"counter"`, "%v", err)
		}
	case named.Name != "":
		return of, api.Failure(api.CodeParams, "leave the scope or the name out", "the scope %.32q has no name", string(scope))
	case scope == api.StateRun:
		of = lease.RunBox(run.Owner.UID, run.Spec.ID)
	case scope != api.StateNamespace:
		return of, api.Failure(api.CodeParams, "use run, name or namespace", "%.32q is no scope", string(scope))
	}
	return of, nil
}

// kindOf is the kind of the scope that is named.
func kindOf(named api.StateWhere) api.StateScope {
	if named.Scope == "" && named.Name != "" {
		return api.StateName
	}
	return cmp.Or(named.Scope, api.StateRun)
}

// pathOf is a key as grants and the audit log name it: namespace/PATH, name/NAME/PATH, run/PATH. A grant for
// keys of a name says which, so that it means the same keys whoever holds it.
func pathOf(key api.StatePath) string {
	if scope := kindOf(key.StateWhere); scope != api.StateName {
		return string(scope) + "/" + key.Path
	}
	return string(api.StateName) + "/" + key.Name + "/" + key.Path
}

// checkPath refuses a path that is not canonical, or cannot be named by a grant.
func checkPath(path string) error {
	parsed, err := grant.NewScope(grant.State, "/"+path, grant.ReadOnly)
	if err != nil || parsed.Pattern() != "/"+path || path == "" || len(path) > pathMost {
		return api.Failure(api.CodeParams, "use parts with / between them, for example plans/today, without : and *", "%.64q is no path of a key, of at most %d bytes", path, pathMost)
	}
	return nil
}

func get(c *service.Call, of lease.Of, p api.StateGetParams) (result api.StateResult, out service.Outcome, err error) {
	result, err = read(c, of, p.Path)
	return result, out, err
}

// read returns a key with its value; version 0: there is none.
func read(c *service.Call, of lease.Of, path string) (result api.StateResult, err error) {
	if err := checkPath(path); err != nil {
		return result, err
	}
	result.Path = path
	k, err := find(c.Tx, of, path, c.Now)
	if err != nil || k == nil {
		return result, err
	}
	v, err := values.Get(c.Tx, Keys.Key(k))
	if err == nil && v != nil {
		result = api.StateResult{StateEntry: k.StateEntry, Value: v.Value}
	}
	return result, err
}

// change opens a scope for a change of a key, and refuses one whose condition does not hold. old is nil
// where there is no such key.
func change(c *service.Call, of lease.Of, path string, condition api.StateIf) (s *scope, old *key, err error) {
	if err := checkPath(path); err != nil {
		return nil, nil, err
	}
	s, err = open(c.Tx, of, c.Now)
	if err != nil {
		return nil, nil, err
	}
	// One that has expired may still be there, and is counted.
	if old, err = Keys.Get(c.Tx, at(of.ID(), path)); err != nil {
		return nil, nil, err
	}
	version := uint64(0)
	if old != nil && !old.over(c.Now) {
		version = old.Version
	}
	if condition.IfVersion != nil && *condition.IfVersion != version {
		err = api.Failure(api.CodeConflict, "read it again with state.get", "the version of %s is %d, not %d", path, version, *condition.IfVersion).By("", api.RuleState)
	}
	return s, old, err
}

func (s State) set(c *service.Call, of lease.Of, p api.StateSetParams) (result api.StateSetResult, out service.Outcome, err error) {
	held, err := s.Blobs.Held(c, of.Owner, p.Blob)
	if err != nil {
		return result, out, err
	}
	v, err := api.Body("a value", p.Value, held)
	if err != nil {
		return result, out, err
	}
	expires, err := expiry(c.Now, p.ExpiresMS)
	if err != nil {
		return result, out, err
	}
	in, old, err := change(c, of, p.Path, p.StateIf)
	if err != nil {
		return result, out, err
	}
	result.Version, err = in.put(c.Tx, old, api.StateEntry{Path: p.Path, Blob: held, Changed: c.Now.UTC(), Expires: expires}, v)
	out.Topics = append(out.Topics, topicOf(of, p.Path))
	return result, out, err
}

// expiry is when a key expires that is set now; zero: never.
func expiry(now time.Time, ms int64) (expires time.Time, err error) {
	switch {
	case ms < 0 || time.Duration(ms) > agent.ClockCeiling/time.Millisecond:
		err = api.Failure(api.CodeParams, "give a time above 0, or leave it out", "%d ms is no time to expire in", ms)
	case ms > 0:
		expires = now.Add(time.Duration(ms) * time.Millisecond).UTC()
	}
	return expires, err
}

func remove(c *service.Call, of lease.Of, p api.StateDeleteParams) (result api.StateDeleteResult, out service.Outcome, err error) {
	s, old, err := change(c, of, p.Path, p.StateIf)
	if err != nil || old == nil {
		return result, out, err
	}
	if !old.over(c.Now) {
		result.Version = old.Version
	}
	out.Topics = append(out.Topics, topicOf(s.Of, p.Path))
	return result, out, cmp.Or(s.remove(c.Tx, old), Scopes.Put(c.Tx, s))
}

// listMost bounds the keys of one answer: they fit into a line.
const listMost = 64

func list(c *service.Call, of lease.Of, p api.StateListParams) (result api.StateListResult, out service.Outcome, err error) {
	result.Keys = []api.StateEntry{}
	for _, path := range []string{p.Path, p.After} {
		if path != "" {
			err = cmp.Or(err, checkPath(path))
		}
	}
	if err != nil {
		return result, out, err
	}
	below, after := at(of.ID(), ""), at(of.ID(), p.After)
	if p.Path != "" {
		below = at(of.ID(), p.Path+"/")
		if p.After == "" { // the key at the path itself comes first
			k, err := find(c.Tx, of, p.Path, c.Now)
			if err != nil {
				return result, out, err
			}
			if k != nil {
				result.Keys = append(result.Keys, k.StateEntry)
			}
		}
	}
	for len(result.Keys) < listMost {
		page, next, err := Keys.Page(c.Tx, below, after, listMost-len(result.Keys))
		if err != nil {
			return result, out, err
		}
		for _, k := range page {
			if !k.over(c.Now) {
				result.Keys = append(result.Keys, k.StateEntry)
			}
		}
		if after, result.Next = next, strings.TrimPrefix(next, at(of.ID(), "")); next == "" {
			break
		}
	}
	return result, out, nil
}

// watch returns a key when it has changed since a version.
func watch(c *service.Call, of lease.Of, p api.StateWatchParams) (result api.StateResult, out service.Outcome, err error) {
	result, err = read(c, of, p.Path)
	if gone := result.Version == 0 && p.Version > 0; err == nil && !gone && result.Version <= p.Version {
		err = service.ErrNotYet
	}
	return result, out, err
}

// Forget removes the keys of a run.
func Forget(tx *store.KernelTx, owner uint32, run agent.ID) error {
	return forget(tx, lease.RunBox(owner, run))
}
