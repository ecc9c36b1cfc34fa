package secrets

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Key returns a secret of root's that is the key of a provider of models, with its authorities, and its value. One that has expired is an
// error; uses are for UseKey, as the last one needs the value, too.
func (s Secrets) Key(tx *store.KernelTx, name string, now time.Time) (one api.Secret, value string, err error) {
	r, err := get(tx, 0, name)
	if err != nil {
		return one, "", err
	}
	one = r.shown()
	one.Terms.CA, one.MaxUses = r.Terms.CA, 0
	if err := one.Usable(now); err != nil {
		return one, "", err
	}
	text, err := s.open(r)
	return one, string(text), err
}

// UseKey decides and counts a call of a model by the call's run that is to carry such a key; without a run it is root's own. The grants
// of models have decided about the agent.
func (s Secrets) UseKey(c *service.Call, p api.SecretUseParams) (out service.Outcome, err error) {
	out.About = aboutUse(p)
	r, err := usableOf(c.Tx, 0, p.Secret, c.Now)
	if err == nil {
		as := &service.Call{Caller: service.Caller{Run: c.Run, Agent: c.Run.Spec.ID != "", UID: c.Run.Owner.UID}, Tx: c.Tx, Now: c.Now}
		err = service.Untainted(s.Taints, as, r.Terms.Avoid)
	}
	if err == nil {
		err = count(c, r, c.Run, p)
	}
	return out, err
}

// UseKept is the method use where the secrets are in another file than the run's grants: tx is of that of the secrets, and own decides in
// the other.
func (s Secrets) UseKept(tx *store.KernelTx, now time.Time, run agent.Run, p api.SecretUseParams, own func(func(*service.Call) (service.Outcome, error)) error) (result api.SecretUseResult, err error) {
	kept := &service.Call{Tx: tx, Now: now}
	r, err := usable(kept, run, p.Secret)
	if err != nil {
		return result, err
	}
	err = own(func(c *service.Call) (out service.Outcome, err error) {
		out.About = aboutUse(p)
		out.Rule, err = s.may(c, run, r, p)
		return out, err
	})
	if err != nil {
		return result, err
	}
	return api.SecretUseResult{Version: r.Version}, count(kept, r, run, p)
}
