package secrets

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	// Grants cover uses, or People were asked about them. Taints are what an agent must not carry.
	Grants service.Grants
	Taints service.Taints
	People interface {
		UseSecret(c *service.Call, run agent.Run, secret, what string) error
	}
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

// open decrypts a value.
func (s Secrets) open(r *Row) ([]byte, error) {
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	return keys.Open(r.Sealed)
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
	case len(terms.Avoid) > 0 && s.Taints == nil:
		return result, out, api.Failure(api.CodeUnenforceable, "leave them out", "taints are not kept, so a secret cannot avoid any")
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
	return get(c.Tx, c.UID, name)
}

// get is a secret of a user's.
func get(tx *store.KernelTx, owner uint32, name string) (*Row, error) {
	r, err := Rows.Get(tx, key(owner, name))
	if err == nil && r == nil {
		err = api.NoSecret(name)
	}
	return r, err
}

// usableOf is a secret of a user's that can be used now.
func usableOf(tx *store.KernelTx, owner uint32, name string, now time.Time) (*Row, error) {
	r, err := get(tx, owner, name)
	if err == nil {
		err = r.shown().Usable(now)
	}
	return r, err
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
		if err := r.shown().Usable(c.Now); err != nil {
			result.Problems = append(result.Problems, api.ErrorOf(err).Message)
		} else if _, err := s.open(r); err != nil {
			result.Problems = append(result.Problems, r.Name+": "+err.Error())
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
	out.About = aboutUse(p)
	run, found := c.Run, c.Run.Spec.ID == p.Run
	if s.Run != nil {
		run, found = s.Run(p.Run)
	}
	if !found || run.State == agent.StateEnded {
		return result, out, api.Failure(api.CodeNotFound, "", "no live run %.64q", string(p.Run))
	}
	c.Run = run // in whose name the use is recorded
	r, err := usable(c, run, p.Secret)
	if err != nil {
		return result, out, err
	}
	if out.Rule, err = s.may(c, run, r, p); err != nil {
		return result, out, err
	}
	result.Version = r.Version
	return result, out, count(c, r, run, p)
}

// aboutUse is a use in the audit log.
func aboutUse(p api.SecretUseParams) string {
	return fmt.Sprintf("%.64q %.200q %.32q %.512q", p.Secret, p.Host, p.Method, p.Path)
}

// count keeps a use, in the place of the oldest one.
func count(c *service.Call, r *Row, run agent.Run, p api.SecretUseParams) error {
	r.Uses++
	u := api.SecretUse{Secret: r.Name, Time: c.Now.UTC(), Run: run.Spec.ID, Agent: run.Spec.Name, Host: p.Host, Method: p.Method, Path: p.Path}
	r.Last = &u
	slot := strconv.FormatInt(r.Uses%usesKept, 16)
	return cmp.Or(Rows.Put(c.Tx, r), uses.Put(c.Tx, &use{Owner: r.Owner, Slot: slot, SecretUse: u}))
}

// usable is a secret that a run was started with, and that can be used now.
func usable(c *service.Call, run agent.Run, name string) (*Row, error) {
	if !has(run, name) {
		return nil, api.Failure(api.CodeDenied, "start it with --secret", "the run was not started with the secret %.64q", name)
	}
	return usableOf(c.Tx, run.Owner.UID, name, c.Now)
}

// may takes a use through the stages of a call of the run's agent: no taint that the secret avoids, and a grant that covers it, or
// people who have allowed it. rule is the grant's id.
func (s Secrets) may(c *service.Call, run agent.Run, r *Row, p api.SecretUseParams) (rule string, err error) {
	as := &service.Call{Caller: service.Caller{Run: run, Agent: true, UID: run.Owner.UID}, Tx: c.Tx, Now: c.Now}
	if err := service.Untainted(s.Taints, as, r.Terms.Avoid); err != nil {
		return "", err
	}
	rule, err = s.Grants.Cover(as, "secret:"+r.Name)
	switch {
	case err == nil:
		return rule, s.Grants.Use(as, rule)
	case api.ErrorOf(err).Code == api.CodeDenied && run.Spec.Kernel.People(agent.AskSecret) > 0:
		return "", s.People.UseSecret(c, run, r.Name, what(p))
	}
	return "", err
}

// pathShown is how much of a path people are asked about, in bytes. Supervisors cut paths there.
const pathShown = 512

// what is a use in words.
func what(p api.SecretUseParams) string {
	return fmt.Sprintf("use the secret %s: %s", p.Secret, secrets.ShortTarget(p.Method, p.Host, p.Path))
}

// Question refuses a use that would be refused also after a yes, and is else what people are asked about it.
func (s Secrets) Question(c *service.Call, run agent.Run, p api.SecretUseParams) (string, error) {
	if _, err := usable(c, run, p.Secret); err != nil {
		return "", err
	}
	if len(p.Path) >= pathShown || strings.ContainsFunc(p.Path+p.Method+p.Host, func(c rune) bool { return c <= ' ' || c > '~' || c == '?' }) {
		return "", api.Failure(api.CodeDenied, "give a grant: clove grant give "+run.Spec.Name+" secret:"+p.Secret, "people see all of a request's path, and this one is longer than %d bytes or is not in ASCII", pathShown-1)
	}
	return what(p), nil
}

// has reports whether a run was started with a secret.
func has(run agent.Run, name string) bool {
	return slices.Contains(secrets.Mounted(run.Spec.Kernel.Secrets), name)
}

// Open returns the secrets that a run was started with, with their values apart: those that its agent reads, or those that it never
// has. One that is not there, or cannot be used, refuses the run.
func (s Secrets) Open(tx *store.KernelTx, run agent.Run, plain bool, now time.Time) (all []api.Secret, values map[string]string, err error) {
	values = map[string]string{}
	of := slices.DeleteFunc(slices.Clone(run.Spec.Kernel.Secrets), func(text string) bool {
		m, err := secrets.ParseMount(text)
		return err != nil || (m.As == secrets.MountPlain) != plain
	})
	for _, name := range secrets.Mounted(of) {
		r, err := usableOf(tx, run.Owner.UID, name, now)
		if err != nil {
			return nil, nil, err
		}
		if plain && !r.Terms.Plain {
			return nil, nil, api.NotPlain(name)
		}
		value, err := s.open(r)
		if err != nil {
			return nil, nil, err
		}
		one := r.shown()
		one.Terms.CA = r.Terms.CA
		all, values[name] = append(all, one), string(value)
	}
	return all, values, nil
}
