package config

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/internal/document"
	"clove.run/clove/kernel/grant"
)

// longestName bounds the names of providers, models and aliases, in bytes.
const longestName = 128

// maxTargets bounds the targets of a model: each may be tried for each call.
const maxTargets = 16

// checkName refuses a name that agents and grants could write in two ways.
func checkName(at, name string) error {
	inside := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-/:") == ""
	if inside && name != "" && len(name) <= longestName && isLowerAlnum(name[0]) {
		if _, err := grant.NewScope("model", name, grant.NoRights); err == nil {
			return nil
		}
	}
	return document.Wrong(at, "use lower-case letters, digits and _ . - / : and begin with a letter or digit", "%.64q is not a name", name)
}

func isLowerAlnum(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }

// isFileName reports whether name is a file in a folder, and nothing that leads out of it.
func isFileName(name string) bool {
	inside := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == ""
	return inside && len(name) <= longestName && name != "" && name[0] != '.'
}

// addModel adds one name that agents use.
func (c *Config) addModel(name string, f modelFile) error {
	at := "models." + name
	m := &model{Target: Target{Name: name, Factor: cmp.Or(f.Factor, 1), Context: f.Context, MaxOutput: f.MaxOutput, Limits: f.Limits}}
	if c.models[name] != nil {
		return document.Wrong(at, "choose another name", "%s is a model of clove's own", name)
	}
	for _, err := range []error{checkName(at, name), m.check(at), checkLimits(at, f.Limits)} {
		if err != nil {
			return err
		}
	}
	if len(f.Targets) == 0 || len(f.Targets) > maxTargets {
		return document.Wrong(document.Join(at, "targets"), "write targets: [{provider: NAME, model: NAME}]", "a model has 1 to %d targets", maxTargets)
	}
	for i, t := range f.Targets {
		target, err := c.target(document.Join(at, "targets."+strconv.Itoa(i)), m.Target, t)
		if err != nil {
			return err
		}
		m.targets = append(m.targets, target)
	}
	slices.SortStableFunc(m.targets, func(a, b Target) int { return cmp.Compare(a.Fallback, b.Fallback) })
	c.models[name] = m
	return nil
}

// check refuses what would make estimates too low. A factor below 1 would reserve less than a
// call uses.
func (m *model) check(at string) error {
	switch {
	case !(m.Factor >= 1 && m.Factor <= 10): // also what is not a number
		return document.Wrong(document.Join(at, "factor"), "use a number from 1 to 10", "%v would estimate too few or far too many tokens", m.Factor)
	case m.Context < 0:
		return document.Wrong(document.Join(at, "context"), "leave it out if it is unknown", "%d is less than 0", m.Context)
	case m.MaxOutput < 0:
		return document.Wrong(document.Join(at, "max_output"), "leave it out if it is unknown", "%d is less than 0", m.MaxOutput)
	}
	return nil
}

// target fills in what a target does not say: the name, and what is known of the model.
func (c *Config) target(at string, t Target, f targetFile) (Target, error) {
	t.Provider, t.Model, t.Fallback, t.Weight = c.Providers[f.Provider], cmp.Or(f.Model, t.Name), f.Fallback, 1
	if f.Weight != nil {
		t.Weight = *f.Weight
	}
	scope, err := grant.NewScope("model", t.Model, grant.NoRights)
	switch {
	case t.Provider == nil:
		names := slices.Sorted(maps.Keys(c.Providers))
		return t, document.Wrong(document.Join(at, "provider"), document.Meant(f.Provider, names, "the providers are "+strings.Join(names, ", ")), "there is no provider %.64q", f.Provider)
	case err != nil || !scope.Concrete():
		return t, document.Wrong(document.Join(at, "model"), "write the name that the provider knows, without *", "%.64q is not the name of a model", t.Model)
	case t.Weight < 0 || t.Weight > 1000:
		return t, document.Wrong(document.Join(at, "weight"), "use a number from 0 to 1000", "%d is out of range", t.Weight)
	case t.Fallback < 0 || t.Fallback > maxTargets:
		return t, document.Wrong(document.Join(at, "fallback"), "use 0 for what is tried first, then 1", "%d is out of range", t.Fallback)
	}
	if known := knownFor(t.Provider, scope); known != nil {
		t.Context, t.MaxOutput = cmp.Or(t.Context, known.context), cmp.Or(t.MaxOutput, known.maxOutput)
	}
	t.Price = c.priceOf(t.Provider, scope)
	return t, nil
}

// addAliases adds the other names of models. An alias of an alias is refused: one step is
// enough, and a circle impossible.
func (c *Config) addAliases(f map[string]string) error {
	for _, alias := range slices.Sorted(maps.Keys(f)) {
		at, name := "aliases."+alias, f[alias]
		if err := checkName(at, alias); err != nil {
			return err
		}
		switch {
		case c.models[alias] != nil:
			return document.Wrong(at, "rename the alias or the model", "%s is a model", alias)
		case f[name] != "" && c.models[name] == nil:
			return document.Wrong(at, "name the model that "+name+" stands for", "%s is an alias itself", name)
		case c.models[name] == nil:
			names := slices.Sorted(maps.Keys(c.models))
			return document.Wrong(at, document.Meant(name, names, "the models are "+strings.Join(names, ", ")), "there is no model %.64q", name)
		}
		c.aliases[alias] = name
	}
	return nil
}
