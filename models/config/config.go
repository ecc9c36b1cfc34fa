package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/kernel/grant"
)

// DefaultFile is read where no other is named. It need not exist.
const DefaultFile = "/etc/clove/models.yaml"

// Config is what one file says, checked. It does not change.
type Config struct {
	// Providers are all that a target may name, by name.
	Providers map[string]*Provider
	models    map[string]*model
	aliases   map[string]string
	prices    []*Price // the file's before the built-in ones: the first that fits holds
}

// model is one name that agents use.
type model struct {
	Target  // what its targets have in common
	targets []Target
}

// Target is one way to serve a model.
type Target struct {
	Name     string // the model's name in the configuration, after aliases: what a grant is checked for
	Provider *Provider
	Model    string // the name that the provider knows
	Weight   int    // its share among targets of the same Fallback; 0: only if the others fail
	Fallback int    // order of trial: 0 first
	Price    *Price // nil: unknown, so that a budget of money refuses the model
	// Factor is by how much the estimate of input tokens is multiplied, at least 1.
	Factor    float64
	Context   int64  // tokens of input and output together; 0: unknown
	MaxOutput int64  // tokens; 0: unknown
	Limits    Limits // of the model, beside those of the provider
}

// UnknownModelError is an error of Resolve. It says that there is no model or alias of this name.
type UnknownModelError struct {
	Model   string
	Nearest string // a name that the user may use; may be empty
}

func (e *UnknownModelError) Error() string {
	text := fmt.Sprintf("there is no model %.128q", e.Model)
	if e.Nearest != "" {
		text += ": did you mean " + e.Nearest + "?"
	}
	return text
}

// NotAllowedError is an error of Resolve. It says that no provider of a model admits the user.
type NotAllowedError struct {
	Model string
	UID   uint32
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("user %d may not use the model %.128q", e.UID, e.Model)
}

// Load reads a file, and looks up the users and groups that it names. A missing file is the
// built-in configuration. Errors are of KindInvalid and have a hint.
func Load(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Parse(nil)
	}
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "models", Message: "cannot read the configuration", Err: err,
			Hint: "it is a file that root can read"}
	}
	c, err := parse(text, system)
	if err != nil {
		return nil, located(path, err)
	}
	return c, nil
}

// Parse reads the text of a file. It looks nothing up: users and groups are numbers, or root.
func Parse(text []byte) (*Config, error) {
	c, err := parse(text, numbers)
	if err != nil {
		return nil, located("models.yaml", err)
	}
	return c, nil
}

// located says in which file a mistake is.
func located(path string, err error) error {
	var known *agent.Error
	if !errors.As(err, &known) {
		known = &agent.Error{Kind: agent.KindInvalid, Message: "cannot use it", Err: err}
	}
	at := *known
	at.Step = path
	at.Hint = cmp.Or(at.Hint, "docs/models.yaml shows every key")
	return &at
}

// Names returns the models and aliases that a user may use, sorted.
func (c *Config) Names(uid uint32, groups []uint32) []string {
	var names []string
	for name := range c.models {
		if _, err := c.resolve(name, uid, groups); err == nil {
			names = append(names, name)
		}
	}
	for alias, name := range c.aliases {
		if slices.Contains(names, name) {
			names = append(names, alias)
		}
	}
	slices.Sort(names)
	return names
}

// Resolve returns the targets of a model or alias that the user may use, in the order of
// trial; the caller chooses among those of one Fallback by Weight. It fails with an
// *UnknownModelError or a *NotAllowedError. The result is the caller's.
func (c *Config) Resolve(name string, uid uint32, groups []uint32) ([]Target, error) {
	return c.resolve(cmp.Or(c.aliases[name], name), uid, groups)
}

func (c *Config) resolve(name string, uid uint32, groups []uint32) ([]Target, error) {
	m := c.models[name]
	if m == nil {
		return nil, &UnknownModelError{Model: name, Nearest: document.Nearest(name, c.Names(uid, groups))}
	}
	allowed := slices.Clone(m.targets)
	allowed = slices.DeleteFunc(allowed, func(t Target) bool { return !t.Provider.Allows(uid, groups) })
	if len(allowed) == 0 {
		return nil, &NotAllowedError{Model: name, UID: uid}
	}
	return allowed, nil
}

// CheckGrants refuses a grant of one model that Resolve does not find, and a text that is no grant.
func (c *Config) CheckGrants(grants []string, uid uint32, groups []uint32) error {
	for _, text := range grants {
		scope, err := grant.Parse(text)
		if err != nil {
			return err
		}
		if scope.Kind() != grant.Model || strings.Contains(scope.Pattern(), "*") {
			continue
		}
		if _, err := c.Resolve(scope.Pattern(), uid, groups); err != nil {
			return &agent.Error{Kind: agent.KindInvalid, Step: "--model", Message: err.Error(), Hint: "clove models list shows those that you may use"}
		}
	}
	return nil
}

// Prices returns the price table as it applies: the file's first, then the built-in one.
func (c *Config) Prices() []*Price { return slices.Clone(c.prices) }

// parse builds the configuration of a text. Providers come before prices, and prices before
// models: each refers to those before. Names are taken in alphabetical order, so that a file
// with two mistakes has the same error each time.
func parse(text []byte, ids lookup) (*Config, error) {
	var f file
	if len(text) > 0 {
		if err := document.Decode(text, &f); err != nil {
			return nil, err
		}
	}
	c := &Config{Providers: map[string]*Provider{}, models: map[string]*model{}, aliases: map[string]string{}}
	c.addOwn()
	for _, name := range slices.Sorted(maps.Keys(f.Providers)) {
		if err := c.addProvider(name, f.Providers[name], ids); err != nil {
			return nil, err
		}
	}
	if err := c.addPrices(f.Prices); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Models)) {
		if err := c.addModel(name, f.Models[name]); err != nil {
			return nil, err
		}
	}
	return c, c.addAliases(f.Aliases)
}

// The providers that exist without any file, and their models.
const (
	Echo     = "echo"     // answers with the user's last text
	Scripted = "scripted" // answers from the script that a run names
)

// addOwn adds what needs no file. Every user may use it: it costs nothing and reaches nobody.
func (c *Config) addOwn() {
	for _, name := range []string{Echo, Scripted} {
		p := &Provider{Name: name, everyone: true, Timeouts: defaultTimeouts}
		c.Providers[name] = p
		t := Target{Name: name, Provider: p, Model: name, Weight: 1, Price: free, Factor: 1}
		c.models[name] = &model{Target: t, targets: []Target{t}}
	}
}
