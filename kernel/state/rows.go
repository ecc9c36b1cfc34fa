package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/store"
)

// Bounds of Scopes. They bound what an owner's agents can have the store keep.
const (
	keysMost    = 1024     // of a scope
	bytesMost   = 16 << 20 // of the values of a scope
	scopesMost  = 1024     // of an owner
	pathMost    = 256      // bytes
	removedMost = 64       // expired keys that one change removes
)

// scope is what is kept of a scope beside its keys.
type scope struct {
	lease.Of
	Keys  int    `json:"keys,omitempty"`
	Bytes int    `json:"bytes,omitempty"` // of their values
	Last  uint64 `json:"last,omitempty"`  // the version of the newest change
	// Expires is when the first of the keys expires, or before; zero: none does.
	Expires time.Time `json:"expires,omitzero"`
}

// key is a key without its value.
type key struct {
	Scope string `json:"scope"`
	api.StateEntry
}

// value is the value of a key.
type value struct {
	Scope string          `json:"scope"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"` // absent: there is only a blob
}

// byOwner is the index of scopes by their owner.
const byOwner = "state_scopes_by_owner"

// Scopes and Keys are the tables of scopes and of keys without their values.
var (
	Scopes = store.Table[scope]{
		Bucket: "state_scopes", Noun: "scope of keys",
		Key: func(s *scope) string { return s.ID() },
		Sound: func(s *scope) error {
			if s.Keys < 0 || s.Keys > keysMost || s.Bytes < 0 || s.Bytes > bytesMost {
				return errors.New("it counts what cannot be")
			}
			return nil
		},
		Indexes: []store.Index[scope]{{Bucket: byOwner, Terms: func(s *scope) []string { return []string{strconv.Itoa(int(s.Owner))} },
			Bound: store.Bound[scope]{Most: scopesMost, Error: func(*scope) error {
				return full("remove runs or keys that are not needed", "the owner's runs have keys in %d scopes", scopesMost)
			}}}},
	}
	Keys = store.Table[key]{
		Bucket: "state_keys", Noun: "key", Key: func(k *key) string { return at(k.Scope, k.Path) },
		Sound: func(k *key) error {
			if checkPath(k.Path) != nil || k.Version == 0 || k.Bytes <= 0 {
				return errors.New("it has no path, no version or no value")
			}
			return nil
		},
	}
	values = store.Table[value]{
		Bucket: "state_values", Noun: "value of a key", Key: func(v *value) string { return at(v.Scope, v.Path) },
		Sound: func(v *value) error {
			if checkPath(v.Path) != nil || v.Value != nil && len(v.Value) == 0 {
				return errors.New("it has no path or no value")
			}
			return nil
		},
	}
)

// Tables are those of the package.
func Tables() []store.Declared { return []store.Declared{Scopes, Keys, values} }

func at(scope, path string) string { return scope + "/" + path }

func full(hint, message string, args ...any) error {
	return api.Failure(api.CodeBusy, hint, message, args...).By("", api.RuleState)
}

// inline are the bytes of a key's value without its blob.
func (k *key) inline() int {
	if k.Blob != nil {
		return int(k.Bytes - k.Blob.Bytes)
	}
	return int(k.Bytes)
}

// holder is a key as a holder of blobs: that of its value.
func holder(scope, path string) string { return "state/" + at(scope, path) }

// over reports whether a key has expired.
func (k *key) over(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// find returns a key of a scope; nil: there is none, or it has expired.
func find(tx *store.KernelTx, of lease.Of, path string, now time.Time) (*key, error) {
	k, err := Keys.Get(tx, at(of.ID(), path))
	if k != nil && k.over(now) {
		k = nil
	}
	return k, err
}

// open returns a scope for a change, which may be new. Some of its keys that have expired are removed.
func open(tx *store.KernelTx, of lease.Of, now time.Time) (*scope, error) {
	s, err := Scopes.Get(tx, of.ID())
	if s == nil {
		s = &scope{Of: of}
	}
	if err != nil || s.Expires.IsZero() || now.Before(s.Expires) {
		return s, err
	}
	all, err := Keys.Below(tx, at(of.ID(), ""))
	s.Expires = time.Time{}
	removed := 0
	for _, k := range all {
		if k.over(now) && removed < removedMost {
			removed++
			err = cmp.Or(err, s.remove(tx, k))
			continue
		}
		s.Expires = earliest(s.Expires, k.Expires)
	}
	return s, cmp.Or(err, Scopes.Put(tx, s))
}

// earliest is the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// put stores a key with its value, of which the path is e's, in place of old, which may be nil, and the scope.
func (s *scope) put(tx *store.KernelTx, old *key, e api.StateEntry, v json.RawMessage) (version uint64, err error) {
	s.Keys, s.Bytes = s.Keys+1, s.Bytes+len(v)
	if old != nil {
		s.Keys, s.Bytes = s.Keys-1, s.Bytes-old.inline()
	}
	switch {
	case s.Keys > keysMost:
		return 0, full("delete some", "the scope has %d keys", keysMost)
	case s.Bytes > bytesMost:
		return 0, full("delete some", "the values of the scope would have more than %d bytes", bytesMost)
	}
	s.Last++
	s.Expires = earliest(s.Expires, e.Expires)
	k := key{s.ID(), e}
	k.Version, k.Bytes = s.Last, int64(len(v))
	if k.Blob != nil {
		k.Bytes += k.Blob.Bytes
	}
	err = blob.Refer(tx, s.Owner, holder(k.Scope, k.Path), k.Blob)
	if old != nil {
		err = cmp.Or(err, blob.Drop(tx, s.Owner, holder(k.Scope, k.Path), old.Blob))
	}
	return s.Last, cmp.Or(err, Scopes.Put(tx, s), Keys.Put(tx, &k), values.Put(tx, &value{k.Scope, k.Path, v}))
}

// remove removes a key. The caller stores the scope.
func (s *scope) remove(tx *store.KernelTx, k *key) error {
	s.Keys, s.Bytes = s.Keys-1, s.Bytes-k.inline()
	return cmp.Or(blob.Drop(tx, s.Owner, holder(k.Scope, k.Path), k.Blob), Keys.Delete(tx, Keys.Key(k)), values.Delete(tx, Keys.Key(k)))
}

// forget removes a scope with its keys.
func forget(tx *store.KernelTx, of lease.Of) error {
	all, err := Keys.Below(tx, at(of.ID(), ""))
	for _, k := range all {
		err = cmp.Or(err, blob.Drop(tx, of.Owner, holder(k.Scope, k.Path), k.Blob), Keys.Delete(tx, Keys.Key(k)), values.Delete(tx, Keys.Key(k)))
	}
	return cmp.Or(err, Scopes.Delete(tx, of.ID()))
}

// Holdings are the references to blobs of all keys, for blob.Check.
func Holdings(tx *store.KernelTx) (all []blob.Holding, err error) {
	scopes, err := Scopes.Below(tx, "")
	for _, s := range scopes {
		keys, kerr := Keys.Below(tx, at(s.ID(), ""))
		err = cmp.Or(err, kerr)
		for _, k := range keys {
			all = append(all, blob.Holding{Owner: s.Owner, Holder: holder(k.Scope, k.Path), Blob: k.Blob})
		}
	}
	return all, err
}
