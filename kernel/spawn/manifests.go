package spawn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Manifest is what an owner lets agents start: a resolved spec, below its digest.
type Manifest struct {
	Owner  agent.Owner          `json:"owner"`
	Name   string               `json:"name"`
	Digest string               `json:"digest"` // digestOf
	Spec   agent.Spec           `json:"spec"`   // without id and name
	Files  []agent.ManifestFile `json:"files,omitempty"`
	Added  time.Time            `json:"added"`
}

// Bounds of manifests.
const (
	manifestsMost = 256 // of one owner, with those that newer ones have replaced
	filesMost     = 16
	inAnswer      = 100
)

// Manifests is their table. Those that a newer one of the same name has replaced stay: grants hold their
// digests.
var Manifests = store.Table[Manifest]{
	Bucket: "manifests", Noun: "manifest",
	Key: func(m *Manifest) string { return manifestKey(m.Owner.UID, m.Name, m.Digest) },
	Sound: func(m *Manifest) error {
		if m.Digest != digestOf(m.Spec, m.Files) {
			return errors.New("it has another digest")
		}
		return nil
	},
	Bound: store.Bound[Manifest]{Most: manifestsMost, Error: func(*Manifest) error {
		return api.Failure(api.CodeBusy, "remove some: clove manifest rm NAME", "there are %d manifests", manifestsMost)
	}},
}

func manifestKey(uid uint32, name, digest string) string {
	return fmt.Sprintf("%d/%s/%s", uid, name, digest)
}

// digestOf is SHA-256 of the spec and the files as JSON, with sha256: before its hex. Identities are left
// out, and of variables the values: they are text for the program.
func digestOf(spec agent.Spec, files []agent.ManifestFile) string {
	spec.ID, spec.Name = "", ""
	spec.Env = slices.Clone(spec.Env)
	for i, entry := range spec.Env {
		spec.Env[i], _, _ = strings.Cut(entry, "=")
	}
	slices.Sort(spec.Env)
	text, err := json.Marshal(struct {
		Spec  agent.Spec           `json:"spec"`
		Files []agent.ManifestFile `json:"files"`
	}{spec, files})
	if err != nil {
		return "" // a spec always encodes
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// add keeps a manifest of the caller's. Runs has checked what the caller may ask for (prepareAdd).
func (s *Spawn) add(c *service.Call, p api.ManifestAddParams, owner agent.Owner) (result api.ManifestResult, out service.Outcome, err error) {
	m := Manifest{Owner: owner, Name: p.Name, Spec: p.Spec, Files: p.Files, Added: c.Now.UTC()}
	m.Spec.ID, m.Spec.Name, m.Spec.Detached, m.Spec.Foreground, m.Spec.Terminal, m.Spec.Stdin = "", "", true, false, false, false
	m.Digest = digestOf(m.Spec, m.Files)
	out.About = m.Name + "@" + m.Digest
	if err := Manifests.Put(c.Tx, &m); err != nil {
		return result, out, err
	}
	return api.ManifestResult{Manifest: m.shown()}, out, nil
}

// prepareAdd checks a manifest as run.start checks a spec, and returns its owner.
func (s *Spawn) prepareAdd(c *service.Call, p api.ManifestAddParams) (owner agent.Owner, err error) {
	if agent.ValidateName(p.Name) != nil {
		return owner, api.Failure(api.CodeParams, "use letters, digits, '-', '_' and '.'", "%.64q is no name of an agent", p.Name)
	}
	if len(p.Files) > filesMost {
		return owner, api.Failure(api.CodeParams, fmt.Sprintf("name at most %d", filesMost), "there are %d files", len(p.Files))
	}
	if p.Spec.Schedule != "" || len(p.Spec.After) > 0 {
		return owner, api.Failure(api.CodeParams, "leave schedule and depends_on out", "an agent starts it, not a time or another run")
	}
	return s.runs().Admit(c.Context, p.Spec, p.Files)
}

// names are the manifests of an owner with a name, the newest first.
func named(tx *store.KernelTx, uid uint32, name string) ([]*Manifest, error) {
	all, err := Manifests.Below(tx, manifestKey(uid, name, ""))
	slices.SortStableFunc(all, func(a, b *Manifest) int { return b.Added.Compare(a.Added) })
	return all, err
}

// Digest is that of the newest manifest of an owner with a name. Agents whose grants are given now hold it.
func Digest(tx *store.KernelTx, uid uint32, name string) (string, error) {
	all, err := named(tx, uid, name)
	if err == nil && len(all) == 0 {
		err = noManifest(uid, name)
	}
	if err != nil {
		return "", err
	}
	return all[0].Digest, nil
}

func noManifest(uid uint32, name string) error {
	return api.Failure(api.CodeNotFound, "clove manifest add FILE keeps one", "user %d has no manifest %.64q", uid, name)
}

func (s *Spawn) list(c *service.Call, p api.ManifestListParams) (result api.ManifestListResult, out service.Outcome, err error) {
	page, next, err := Manifests.Page(c.Tx, fmt.Sprintf("%d/", c.UID), p.After, inAnswer)
	result.Manifests, result.Next = []api.AddedManifest{}, next
	for _, m := range page {
		result.Manifests = append(result.Manifests, m.shown())
	}
	return result, out, err
}

// remove forgets a name with all that was added below it. Grants of them cover nothing from now on.
func (s *Spawn) remove(c *service.Call, p api.ManifestNameParams) (result api.ManifestRemoveResult, out service.Outcome, err error) {
	all, err := named(c.Tx, c.UID, p.Name)
	if err == nil && len(all) == 0 {
		err = noManifest(c.UID, p.Name)
	}
	result.Removed = []api.AddedManifest{}
	for _, m := range all {
		if err == nil {
			err = Manifests.Delete(c.Tx, Manifests.Key(m))
		}
		result.Removed = append(result.Removed, m.shown())
	}
	out.About = p.Name
	return result, out, err
}

func (m *Manifest) shown() api.AddedManifest {
	return api.AddedManifest{Owner: m.Owner.UID, Name: m.Name, Digest: m.Digest, Added: m.Added, Grants: m.Spec.Kernel.Grants}
}
