package spawn

import (
	"clove.run/clove/api"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
)

// collection is what was copied from a descendant.
type collection struct {
	run    string // its name
	result api.CollectResult
}

// collect copies what a descendant has changed, before the transaction.
func (s *Spawn) collect(c *service.Call, p api.CollectParams) (done collection, err error) {
	var k *Child
	if err := s.engine.Look(c.Caller, func(look *service.Call) (err error) { k, err = find(look, p.Child); return err }); err != nil {
		return done, err
	}
	if _, found := s.runs().Get(k.ID); !found {
		return done, withoutFiles(k)
	}
	done.run = k.Run
	done.result, err = s.runs().Collect(c.Context, c.Run, k.ID, p)
	return done, err
}

// withoutFiles refuses a child that is no run: not yet, never, or no longer.
func withoutFiles(k *Child) error {
	switch {
	case k.Queue != nil:
		return api.Failure(api.CodeConflict, "ask again in a moment", "%s has not started yet", k.Run)
	case k.End != nil && k.End.Record.Started.IsZero():
		return api.Failure(api.CodeNotFound, "agent.wait says why", "%s never started, and has no files", k.Run)
	}
	return api.Failure(api.CodeNotFound, "collect before it is removed; a manifest with remove: true keeps nothing", "%s was removed with its files", k.Run)
}

// collected answers.
func collected(_ *service.Call, _ api.CollectParams, done collection) (api.CollectResult, service.Outcome, error) {
	return done.result, service.Outcome{About: done.run}, nil
}

// kept is the grant that reading another run's folder needs.
func kept(p api.FetchParams) []string {
	return []string{string(grant.File) + ":" + p.Keeper + ":" + p.From + ":" + string(grant.ReadOnly)}
}

// fetch copies a part of another run's kept folder, before the transaction.
func (s *Spawn) fetch(c *service.Call, p api.FetchParams) (none api.Nothing, err error) {
	return none, s.runs().Fetch(c.Context, c.Run, p)
}

func fetched(_ *service.Call, p api.FetchParams, _ api.Nothing) (none api.Nothing, out service.Outcome, err error) {
	return none, service.Outcome{About: p.Keeper}, nil
}
