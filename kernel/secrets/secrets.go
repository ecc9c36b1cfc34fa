package secrets

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/service"
	"clove.run/clove/secrets"
	"clove.run/clove/store"
)

// Secrets is the service.
type Secrets struct {
	// Keys encrypt values; nil: there are no secrets here.
	Keys Keys
	// Run returns a run by its id; nil: there is only the caller's.
	Run func(agent.ID) (agent.Run, bool)
}

// Keys encrypt and decrypt values.
type Keys interface {
	// CheckSSH refuses what is no private key that can sign. The library of ssh is no part of the programs that start agents.
	CheckSSH(value []byte) error
	Seal(value []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// Service returns its methods.
func (s Secrets) Service() *service.Service {
	return service.New("secrets", Tables()...).On(
		service.Write(methods.SecretSet, about(func(p api.SecretSetParams) string { return p.Name }), s.set),
		service.Write(methods.SecretRotate, about(func(p api.SecretRotateParams) string { return p.Name }), s.rotate),
		service.Write(methods.SecretRemove, about(func(p api.SecretNameParams) string { return p.Name }), s.remove),
		service.Read(methods.SecretList, service.Stages[api.SecretListParams]{}, s.list),
		service.Read(methods.SecretCheck, service.Stages[api.Nothing]{}, s.check),
		service.Read(methods.SecretUses, service.Stages[api.SecretUsesParams]{}, s.uses),
		service.Write(methods.SecretUse, about(func(p api.SecretUseParams) string { return p.Secret }), s.use),
	)
}

func about[P any](name func(P) string) service.Stages[P] {
	return service.Stages[P]{About: func(p P) string { return fmt.Sprintf("%.64q", name(p)) }}
}

func (s Secrets) keys() (Keys, error) {
	if s.Keys == nil {
		return nil, api.Failure(api.CodeUnenforceable, "start cloved", "secrets are kept by cloved")
	}
	return s.Keys, nil
}

// seal checks a value and encrypts it.
func (s Secrets) seal(terms secrets.Terms, value string) ([]byte, error) {
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	err = terms.CheckValue([]byte(value))
	if err == nil && terms.SSH != nil {
		err = keys.CheckSSH([]byte(value))
	}
	if err != nil {
		return nil, api.Failure(api.CodeParams, "", "%v", err)
	}
	return keys.Seal([]byte(value))
}

func (s Secrets) set(c *service.Call, p api.SecretSetParams) (result api.SecretResult, out service.Outcome, err error) {
	out.About = fmt.Sprintf("%.64q", p.Name)
	wrong := func(err error) error { return api.Failure(api.CodeParams, "", "%v", err) }
	if err := secrets.CheckName(p.Name); err != nil {
		return result, out, wrong(err)
	}
	terms, err := p.Terms.Normal()
	if err != nil {
		return result, out, wrong(err)
	}
	switch {
	case terms.CA != "" && !c.Root():
		return result, out, api.Failure(api.CodeDenied, "", "root alone gives a secret an authority of its own")
	case p.Uses < 0:
		return result, out, api.Failure(api.CodeParams, "", "%d is no number of uses", p.Uses)
	case !p.Expires.IsZero() && !p.Expires.After(c.Now):
		return result, out, api.Failure(api.CodeParams, "", "the secret would have expired at %s", p.Expires.UTC().Format(time.RFC3339))
	}
	old, err := Rows.Get(c.Tx, key(c.UID, p.Name))
	if err != nil {
		return result, out, err
	}
	if old != nil {
		return result, out, api.Failure(api.CodeConflict, "clove secret rotate "+p.Name+" gives it another value, clove secret rm "+p.Name+" forgets it", "there is a secret %s", p.Name)
	}
	sealed, err := s.seal(terms, p.Value)
	if err != nil {
		return result, out, err
	}
	r := &Row{Name: p.Name, Owner: c.UID, Terms: terms, Sealed: sealed, Set: c.Now.UTC(), Version: 1, MaxUses: p.Uses}
	if !p.Expires.IsZero() {
		r.Expires = p.Expires.UTC()
	}
	result.Secret = r.shown()
	return result, out, Rows.Put(c.Tx, r)
}

// named is a secret of the caller's.
func named(c *service.Call, name string) (*Row, error) {
	r, err := Rows.Get(c.Tx, key(c.UID, name))
	if err == nil && r == nil {
		err = noSecret(name)
	}
	return r, err
}

func noSecret(name string) error {
	return api.Failure(api.CodeNotFound, "clove secret list shows yours, clove secret set makes one", "there is no secret %.64q", name)
}

func (s Secrets) rotate(c *service.Call, p api.SecretRotateParams) (result api.SecretResult, out service.Outcome, err error) {
	out.About = fmt.Sprintf("%.64q", p.Name)
	r, err := named(c, p.Name)
	if err != nil {
		return result, out, err
	}
	if r.Sealed, err = s.seal(r.Terms, p.Value); err != nil {
		return result, out, err
	}
	r.Version, r.Rotated = r.Version+1, c.Now.UTC()
	result.Secret = r.shown()
	return result, out, Rows.Put(c.Tx, r)
}

func (s Secrets) remove(c *service.Call, p api.SecretNameParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = fmt.Sprintf("%.64q", p.Name)
	r, err := named(c, p.Name)
	if err != nil {
		return none, out, err
	}
	all, err := uses.Below(c.Tx, Rows.Key(r)+"/")
	for _, u := range all {
		err = cmp.Or(err, uses.Delete(c.Tx, uses.Key(u)))
	}
	return none, out, cmp.Or(err, Rows.Delete(c.Tx, Rows.Key(r)))
}

// of are the secrets of a user, by the order of their names.
func of(tx *store.KernelTx, owner uint32) ([]*Row, error) {
	return Rows.Below(tx, key(owner, ""))
}

func (s Secrets) list(c *service.Call, p api.SecretListParams) (result api.SecretListResult, out service.Outcome, err error) {
	result.Secrets = []api.Secret{}
	if p.All && !c.Root() {
		return result, out, api.Failure(api.CodeDenied, "leave --all out", "root alone sees the secrets of all users")
	}
	prefix := key(c.UID, "")
	if p.All {
		prefix = ""
	}
	all, err := Rows.Below(c.Tx, prefix)
	for _, r := range all {
		result.Secrets = append(result.Secrets, r.shown())
	}
	return result, out, err
}

func (s Secrets) check(c *service.Call, _ api.Nothing) (result api.SecretCheckResult, out service.Outcome, err error) {
	result.Problems = []string{}
	all, err := of(c.Tx, c.UID)
	if err != nil {
		return result, out, err
	}
	for _, r := range all {
		result.Checked++
		_, why := r.unusable(c.Now)
		if keys, kerr := s.keys(); why == "" {
			if kerr == nil {
				_, kerr = keys.Open(r.Sealed)
			}
			if kerr != nil {
				why = kerr.Error()
			}
		}
		if why != "" {
			result.Problems = append(result.Problems, r.Name+": "+why)
		}
	}
	return result, out, nil
}

func (s Secrets) uses(c *service.Call, p api.SecretUsesParams) (result api.SecretUsesResult, out service.Outcome, err error) {
	result.Uses = []api.SecretUse{}
	prefix := key(c.UID, "")
	if p.Name != "" {
		r, err := named(c, p.Name)
		if err != nil {
			return result, out, err
		}
		prefix = Rows.Key(r) + "/"
	}
	all, err := uses.Below(c.Tx, prefix)
	for _, u := range all {
		result.Uses = append(result.Uses, u.SecretUse)
	}
	slices.SortStableFunc(result.Uses, func(a, b api.SecretUse) int { return b.Time.Compare(a.Time) })
	return result, out, err
}

// use decides one request of a run. What it is refused for, its agent reads.
func (s Secrets) use(c *service.Call, p api.SecretUseParams) (result api.SecretUseResult, out service.Outcome, err error) {
	out.About = fmt.Sprintf("%.64q %.200q %.32q %.512q", p.Secret, p.Host, p.Method, p.Path)
	run, found := c.Run, c.Run.Spec.ID == p.Run
	if s.Run != nil {
		run, found = s.Run(p.Run)
	}
	if !found || run.State == agent.StateEnded {
		return result, out, api.Failure(api.CodeNotFound, "", "no live run %.64q", string(p.Run))
	}
	out.Owner = &run.Owner.UID
	if !has(run, p.Secret) {
		return result, out, api.Failure(api.CodeDenied, "start it with --secret", "the run was not started with the secret %.64q", p.Secret)
	}
	r, err := Rows.Get(c.Tx, key(run.Owner.UID, p.Secret))
	if err == nil && r == nil {
		err = noSecret(p.Secret)
	}
	if err != nil {
		return result, out, err
	}
	if code, why := r.unusable(c.Now); why != "" {
		return result, out, api.Failure(code, "clove secret list", "%s: %s", r.Name, why)
	}
	r.Uses++
	u := api.SecretUse{Secret: r.Name, Time: c.Now.UTC(), Run: run.Spec.ID, Agent: run.Spec.Name, Host: p.Host, Method: p.Method, Path: p.Path}
	r.Last = &u
	result.Version = r.Version
	slot := strconv.FormatInt(r.Uses%usesKept, 16)
	return result, out, cmp.Or(Rows.Put(c.Tx, r), uses.Put(c.Tx, &use{Owner: r.Owner, Slot: slot, SecretUse: u}))
}

// has reports whether a run was started with a secret.
func has(run agent.Run, name string) bool {
	return slices.Contains(names(run, func(m secrets.Mount) bool { return m.Secret == name }), name)
}

// names are the secrets of some of the mounts of a run, in their order.
func names(run agent.Run, of func(secrets.Mount) bool) (all []string) {
	for _, text := range run.Spec.Kernel.Secrets {
		if m, err := secrets.ParseMount(text); err == nil && of(m) {
			all = append(all, m.Secret)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Open returns the secrets that a run was started with, with their values apart: those that its agent reads, or those that it never
// has. One that is not there, or cannot be used, refuses the run.
func (s Secrets) Open(tx *store.KernelTx, run agent.Run, plain bool, now time.Time) (all []api.Secret, values map[string]string, err error) {
	keys, err := s.keys()
	if err != nil {
		return nil, nil, err
	}
	values = map[string]string{}
	for _, name := range names(run, func(m secrets.Mount) bool { return (m.As == secrets.MountPlain) == plain }) {
		r, err := Rows.Get(tx, key(run.Owner.UID, name))
		if err == nil && r == nil {
			err = noSecret(name)
		}
		if err != nil {
			return nil, nil, err
		}
		if code, why := r.unusable(now); why != "" {
			return nil, nil, api.Failure(code, "clove secret list", "%s: %s", name, why)
		}
		if plain && !r.Terms.Plain {
			return nil, nil, api.Failure(api.CodeDenied, "give the agent a placeholder, as "+name+":env=VARIABLE, or set the secret anew with --plain", "the secret %s is not for an agent to read", name)
		}
		value, err := keys.Open(r.Sealed)
		if err != nil {
			return nil, nil, err
		}
		one := r.shown()
		one.Terms.CA = r.Terms.CA
		all, values[name] = append(all, one), string(value)
	}
	return all, values, nil
}
