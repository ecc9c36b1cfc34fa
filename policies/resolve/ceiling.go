package resolve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// ceilingName is the name of the ceiling's document.
const ceilingName = "host"

// CeilingFile is the document in dir that bounds every run of the host, root's too.
func CeilingFile(dir string) string { return filepath.Join(dir, ceilingName+policyEndings[0]) }

// CheckCeiling refuses a spec that allows more than the ceiling in dir, if there is one. A
// ceiling bounds only what it names, or what a document that it extends by name does. Only
// the places in which the spec was changed count; none: all of it is new.
func CheckCeiling(spec agent.Spec, dir string, places ...string) error {
	path := CeilingFile(dir)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		other := strings.TrimSuffix(path, policyEndings[0]) + policyEndings[1]
		if _, err := os.Lstat(other); err == nil {
			return &agent.Error{Kind: agent.KindInvalid, Step: "ceiling", Message: other + " is no ceiling", Hint: "rename it to " + path}
		}
		return nil
	}
	ceiling, err := LoadCeiling(path)
	if err != nil {
		return err
	}
	for _, difference := range settings.Wider(ceiling.Spec, spec) {
		if ceiling.bounds(difference.Place) && (len(places) == 0 || concerns(places, difference.Place)) {
			return &agent.Error{Kind: agent.KindPrivilege, Step: "ceiling", Message: fmt.Sprintf("this host allows no agent that much: %s", difference),
				Hint: "ask for less, by a flag of " + difference.Place + "; root's " + path + " is the ceiling of every run"}
		}
	}
	return nil
}

// concerns reports whether one of the places is that of the difference. A denial that was missing
// before may matter only now, because a rule was added.
func concerns(places []string, place string) bool {
	return slices.Contains(places, place) || place == "network.deny" && slices.Contains(places, "network.allow")
}

// unheld are keys that a ceiling cannot bound: nothing compares them.
var unheld = []string{"environment", "agent_socket"}

// LoadCeiling reads the document of a ceiling. It needs no reason where it is wider than the
// standard level: that is its purpose.
func LoadCeiling(path string) (*Policy, error) {
	h, err := host.Current()
	if err != nil {
		return nil, err
	}
	h.Policies = []string{filepath.Dir(path)}
	h.CPUs = nil // a ceiling may be for larger machines, too
	for cpu := range agent.CPUCeiling {
		h.CPUs = append(h.CPUs, cpu)
	}
	chain, err := loadChain(path, h)
	if err != nil {
		return nil, err
	}
	if chain[0].Name != ceilingName {
		return nil, ofPolicy(chain[0], "", invalid("", "write name: "+ceilingName, "name: the ceiling of a host is called %s", ceilingName))
	}
	for _, key := range unheld {
		if chain[0].written.Names(key) {
			return nil, ofPolicy(chain[0], "", invalid("", "omit it", "%s: a ceiling cannot bound it", key))
		}
	}
	for i := range chain {
		chain[i].written.Widen = map[string]string{}
		for _, key := range policies.TopKeys() {
			chain[i].written.Widen[key] = "a ceiling"
		}
	}
	return layOver(chain, h)
}

// bounds reports whether a document that the ceiling's writer named says something of a place.
func (p *Policy) bounds(place string) bool {
	for i, link := range p.Chain {
		last := i == len(p.Chain)-1
		if last && i > 0 && p.Chain[i-1].written.Extends == "" {
			return false // the standard level, which no document named
		}
		for _, key := range grouped(place) {
			if link.written.Names(key) {
				return true
			}
		}
	}
	return false
}

// grouped are the keys that bound a place: a document that names memory means no swap, and
// one that names a mode of the network means that no rule reaches beyond it.
func grouped(place string) []string {
	switch place {
	case "limits.memory_swap":
		return []string{place, "limits.memory"}
	case "network.mode", "network.allow", "network.deny", "network.host_ports", "network.dns":
		return []string{"network.mode", "network.allow", "network.deny", place}
	case "files.writable", "files.tmpfs":
		return []string{place, "files.root", "files.writable"}
	case "models":
		return []string{place, "grants"}
	}
	return []string{place}
}
