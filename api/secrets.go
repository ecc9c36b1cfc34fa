package api

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/secrets"
)

// Secret is a secret of a user's, without its value.
type Secret struct {
	Name    string        `json:"name"`
	Owner   uint32        `json:"owner"`
	Terms   secrets.Terms `json:"terms"`
	Set     time.Time     `json:"set"` // when
	Rotated time.Time     `json:"rotated,omitzero"`
	Version uint64        `json:"version"` // of the value: 1 when it was set, one more with each secret.rotate
	Expires time.Time     `json:"expires,omitzero"`
	MaxUses int64         `json:"max_uses,omitempty"` // 0: as many as are asked for
	Uses    int64         `json:"uses"`
	Last    *SecretUse    `json:"last,omitempty"` // the last use
}

// Usable refuses a secret that cannot be used now.
func (s Secret) Usable(now time.Time) error {
	switch {
	case !s.Expires.IsZero() && !now.Before(s.Expires):
		return Failure(CodeDenied, "clove secret list", "%s: it expired at %s", s.Name, s.Expires.Format(time.RFC3339))
	case s.MaxUses > 0 && s.Uses >= s.MaxUses:
		return Failure(CodeBudget, "clove secret list", "%s: its %d uses are used up", s.Name, s.MaxUses)
	}
	return nil
}

// NotPlain refuses a secret that an agent is to read, where its owner did not allow that.
func NotPlain(name string) *Error {
	return Failure(CodeDenied, "give the agent a placeholder, as "+name+":env=VARIABLE, or set the secret anew with --plain", "the secret %s is not for an agent to read", name)
}

// NoSecret says that a user has no secret of a name.
func NoSecret(name string) error {
	return Failure(CodeNotFound, "clove secret list shows yours, clove secret set makes one", "there is no secret %.64q", name)
}

// SecretUse is a request that carried a secret, as the agent sent it: without its query.
type SecretUse struct {
	Secret string    `json:"secret"`
	Time   time.Time `json:"time"`
	Run    agent.ID  `json:"run"`
	Agent  string    `json:"agent"` // the name of the run
	Host   string    `json:"host"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
}

// SecretSetParams make a secret of the caller's.
type SecretSetParams struct {
	Name string `json:"name"`
	// Value is one line of printable ASCII without spaces, of 8 to 8192 bytes; of terms with ssh a private key, and of terms without a host any
	// text of as many. No answer and no log has it.
	Value   string        `json:"value"`
	Terms   secrets.Terms `json:"terms"`
	Uses    int64         `json:"uses,omitempty"`   // how many requests may carry it; 0: any number
	Expires time.Time     `json:"expires,omitzero"` // absent: never
}

// SecretRotateParams give a secret another value. Runs that use it get that with their next request.
type SecretRotateParams struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SecretNameParams name a secret of the caller's.
type SecretNameParams struct {
	Name string `json:"name"`
}

// SecretListParams choose secrets.
type SecretListParams struct {
	All bool `json:"all,omitempty"` // those of all users; root alone may
}

// SecretResult is one secret.
type SecretResult struct {
	Secret Secret `json:"secret"`
}

// SecretListResult has secrets in the order of their names.
type SecretListResult struct {
	Secrets []Secret `json:"secrets"`
}

// SecretCheckResult has what is wrong with each secret that cannot be used.
type SecretCheckResult struct {
	Checked  int      `json:"checked"`
	Problems []string `json:"problems"`
}

// SecretUsesParams choose uses of the caller's secrets.
type SecretUsesParams struct {
	Name string `json:"name,omitempty"` // empty: of all
}

// SecretUsesResult has the newest uses of each secret, the newest first.
type SecretUsesResult struct {
	Uses []SecretUse `json:"uses"`
}

// SecretUseParams are a supervisor's: a request of a run that is to carry a secret.
type SecretUseParams struct {
	Run    agent.ID `json:"run"`
	Secret string   `json:"secret"`
	Host   string   `json:"host"`
	Method string   `json:"method"`
	Path   string   `json:"path"`
}

// SecretUseResult lets a request carry a secret.
type SecretUseResult struct {
	Version uint64 `json:"version"` // of the value that is to be used
}

// SecretOpenParams name a run whose supervisor gets the terms of its secrets, and a process of whose the values.
type SecretOpenParams struct {
	Run agent.ID `json:"run"`
	// Plain asks for the secrets that the agent is to read in files, absent for those that it never has.
	Plain bool `json:"plain,omitempty"`
}

// SecretOpenResult are the secrets that a run was started with, by the order of their names.
type SecretOpenResult struct {
	Secrets []Secret `json:"secrets"`
}
