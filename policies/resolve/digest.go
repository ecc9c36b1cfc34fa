package resolve

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// Digest is the SHA-256, in hex, of what the manifest says with all that it extends: canonical
// JSON, with keys in their order, no blanks, and without the place and the description of the
// file. A file that it refers to is in it by the digest of its content, a variable by its name,
// and a path of a folder as it is written: so the digest is the same on another machine.
func (m *Manifest) Digest(h host.Host) (string, error) {
	text, err := m.canonical(h)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Resolved are the settings of the manifest with those of the policies that it extends, by their
// keys. Values of variables are left out.
func (m *Manifest) Resolved(h host.Host) (map[string][]string, error) {
	chain, err := m.chain(h)
	if err != nil {
		return nil, err
	}
	below := settings.Values{}
	for _, link := range slices.Backward(chain) {
		below = link.asWritten.Extend(below)
	}
	values := over(m.Written.Values, below)
	resolved := map[string][]string{}
	for i := range settings.All() {
		s := &settings.All()[i]
		if texts, has := values[s.Name()]; has && s.ManifestKey() != "" {
			resolved[s.ManifestKey()] = texts
		}
	}
	set := slices.Concat(below[settings.EnvironmentSet], m.Written.Values[settings.EnvironmentSet])
	pass := slices.Concat(below[settings.EnvironmentPass], m.Written.Values[settings.EnvironmentPass])
	enter(resolved, settings.EnvironmentSet, each(set, nameOf))
	enter(resolved, settings.EnvironmentPass, pass)
	return resolved, nil
}

// chain is the policy below and all that it extends.
func (m *Manifest) chain(h host.Host) ([]Link, error) {
	chain, err := loadChain(cmp.Or(m.extends(), policies.StandardName), h)
	if err != nil {
		err = m.wrong(err)
	}
	return chain, err
}

// filterBelow is the filter of the policies below: a name, or the absolute path of a file.
func (m *Manifest) filterBelow(h host.Host) (string, error) {
	chain, err := m.chain(h)
	for _, link := range chain {
		if text := link.written.Text(settings.Seccomp); text != "" {
			return text, nil
		}
	}
	return "", err
}

// enter enters a list as a set.
func enter(resolved map[string][]string, key string, texts []string) {
	delete(resolved, key)
	if len(texts) > 0 {
		slices.Sort(texts)
		resolved[key] = slices.Compact(texts)
	}
}

func nameOf(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}

// canonical is the text that the digest is of.
func (m *Manifest) canonical(h host.Host) ([]byte, error) {
	resolved, err := m.Resolved(h)
	if err != nil {
		return nil, err
	}
	whole := map[string]any{"version": m.Written.Version, "name": m.Written.Name, "command": slices.Concat([]string{}, m.Written.Command), "args": slices.Concat([]string{}, m.Written.Args)}
	for key, text := range map[string]string{"model": m.Written.Model, "instructions": m.Instructions, "home": m.Written.Home, "program": m.Written.Program, "install": m.Written.Install} {
		if text != "" {
			whole[key] = text
		}
	}
	if len(m.Written.Login) > 0 {
		whole["login"] = m.Written.Login
	}
	for key, number := range map[string]int{"max_iterations": m.Written.MaxIterations, "context": m.Written.Context} {
		if number != 0 {
			whole[key] = number
		}
	}
	if len(m.Children) > 0 {
		whole["spawn"] = map[string]string{}
	}
	for _, child := range m.Children {
		if whole["spawn"].(map[string]string)[child.Written.Name], err = child.Digest(h); err != nil {
			return nil, err
		}
	}
	for key, texts := range resolved {
		whole[key] = texts
	}
	if script := m.Written.Script; script != "" {
		if whole["script"], err = digestFile(m.absolute(script)); err != nil {
			return nil, m.at("script", err)
		}
	}
	files := absoluteValues(m.Written.Values, m.dir)
	if filter, err := m.filterBelow(h); err != nil {
		return nil, err
	} else if !files.Has(settings.Seccomp) {
		files.Set(settings.Seccomp, filter)
	}
	for _, name := range []string{settings.EnvFile, settings.Seccomp} {
		key := settings.Find(name).ManifestKey()
		if !files.Has(name) || name == settings.Seccomp && isFilterName(files.Text(name)) {
			continue
		}
		var digests []string
		for _, path := range files[name] {
			sum, err := digestFile(path)
			if err != nil {
				return nil, m.at(key, err)
			}
			digests = append(digests, sum)
		}
		whole[key] = digests
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(whole) // sorts keys
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// Executes are the files of the host that a run of the manifest executes, with their digests.
func (m *Manifest) Executes() (files []agent.ManifestFile, err error) {
	if m.Written.Script == "" {
		return nil, nil
	}
	real, err := filepath.EvalSymlinks(m.absolute(m.Written.Script))
	if err != nil {
		return nil, m.at("script", err)
	}
	sum, err := digestFile(real)
	if err != nil {
		return nil, m.at("script", err)
	}
	return []agent.ManifestFile{{Path: real, SHA256: strings.TrimPrefix(sum, "sha256:")}}, nil
}

// digestMost bounds a file that is in the digest by its content, in bytes: a file with holes would be
// read for days.
const digestMost = 4 << 30

// digestFile is DigestFile for a file that a manifest names.
func digestFile(path string) (string, error) { return DigestFile(path, digestMost) }

// DigestFile is the digest of a regular file's content, "sha256:" and hex. An error refuses a file with more
// than so many bytes.
func DigestFile(path string, most int64) (string, error) {
	file, err := host.OpenRegular(path)
	if err != nil {
		return "", &agent.Error{Kind: agent.KindInvalid, Message: "cannot read the file", Hint: "name a file; a relative path begins at the manifest", Err: err}
	}
	defer file.Close()
	sum, size := sha256.New(), int64(0)
	info, err := file.Stat()
	if err == nil && info.Size() <= most {
		size, err = io.Copy(sum, io.LimitReader(file, most+1))
	}
	switch {
	case err != nil:
		return "", agent.Failed("read", err)
	case max(info.Size(), size) > most:
		return "", invalid("", "name another file", "%s has more than %d bytes", path, most)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
