package secrets

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/secrets"
	"clove.run/clove/store"
)

// Bounds of the service.
const (
	secretsMost = 128 // of a user
	usesKept    = 256 // of a secret
)

// Row is a secret.
type Row struct {
	Name    string         `json:"name"`
	Owner   uint32         `json:"owner"`
	Terms   secrets.Terms  `json:"terms"`
	Sealed  []byte         `json:"sealed"` // the value, encrypted
	Set     time.Time      `json:"set"`
	Rotated time.Time      `json:"rotated,omitzero"`
	Version uint64         `json:"version"` // of the value
	Expires time.Time      `json:"expires,omitzero"`
	MaxUses int64          `json:"max_uses,omitempty"`
	Uses    int64          `json:"uses,omitempty"`
	Last    *api.SecretUse `json:"last,omitempty"`
}

// use is one use of a secret. Those of a secret have usesKept slots, and take turns.
type use struct {
	Owner uint32 `json:"owner"`
	Slot  string `json:"slot"`
	api.SecretUse
}

// byOwner is the index of secrets by their owner.
const byOwner = "secrets_by_owner"

// Rows and uses are the tables of secrets and of their uses.
var (
	Rows = store.Table[Row]{
		Bucket: "secrets", Noun: "secret", Key: func(r *Row) string { return key(r.Owner, r.Name) },
		Sound: func(r *Row) error {
			if secrets.CheckName(r.Name) != nil || len(r.Sealed) == 0 || len(r.Terms.Hosts) == 0 && !r.Terms.Plain || r.Version == 0 {
				return errors.New("it has no name, no value or no host")
			}
			return nil
		},
		Indexes: []store.Index[Row]{{Bucket: byOwner, Terms: func(r *Row) []string { return []string{strconv.FormatUint(uint64(r.Owner), 10)} },
			Bound: store.Bound[Row]{Most: secretsMost, Error: func(*Row) error {
				return api.Failure(api.CodeBusy, "clove secret rm", "a user has at most %d secrets", secretsMost)
			}}}},
	}
	uses = store.Table[use]{
		Bucket: "secret_uses", Noun: "use of a secret", Key: func(u *use) string { return key(u.Owner, u.Secret) + "/" + u.Slot },
		Sound: func(u *use) error {
			if secrets.CheckName(u.Secret) != nil || u.Time.IsZero() {
				return errors.New("it has no secret or no time")
			}
			return nil
		},
	}
)

// Tables are those of the package.
func Tables() []store.Declared { return []store.Declared{Rows, uses} }

func key(owner uint32, name string) string { return fmt.Sprintf("%d/%s", owner, name) }

// shown is a secret without its value.
func (r *Row) shown() api.Secret {
	s := api.Secret{Name: r.Name, Owner: r.Owner, Terms: r.Terms, Set: r.Set, Rotated: r.Rotated, Version: r.Version, Expires: r.Expires, MaxUses: r.MaxUses, Uses: r.Uses, Last: r.Last}
	s.Terms.CA = ""
	return s
}
