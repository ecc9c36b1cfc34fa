package main

import (
	"path/filepath"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// namedUsers are those of whom the agent's /etc/passwd tells for sure.
var namedUsers = []agent.User{policies.AgentUser, policies.RootUser}

// readIdentity reads who the agent is, inside and in clove's own lists.
func (r *request) readIdentity() (err error) {
	if r.spec.Name = r.flags.String(flagName); r.spec.Name != "" {
		if err := agent.ValidateName(r.spec.Name); err != nil {
			return err
		}
	}
	if text := r.flags.String(flagUser); text != "" {
		if r.spec.User, err = parseUser(text); err != nil {
			return err
		}
	}
	if r.spec.Hostname = r.flags.String(flagHostname); r.spec.Hostname != "" && !agent.IsHostname(r.spec.Hostname) {
		return invalid(flagHostname, "use 1 to 63 letters, digits and '-', in parts that are joined by '.'", "%q is not a host name", r.spec.Hostname)
	}
	return r.readLabels()
}

// readLabels: the last of two labels with one key wins, as with -e.
func (r *request) readLabels() error {
	for _, text := range r.flags.StringSlice(flagLabel) {
		key, value, valued := strings.Cut(text, "=")
		if key == "" || strings.ContainsFunc(text, unprintable) {
			return invalid(flagLabel, "write KEY=VALUE", "%q is not a label", text)
		}
		if !valued {
			return invalid(flagLabel, "write "+key+"=VALUE, or "+key+"= for a label without a value", "%q has no value", text)
		}
		if r.spec.Labels == nil {
			r.spec.Labels = map[string]string{}
		}
		r.spec.Labels[key] = value
	}
	return nil
}

// parseUser reads NAME|UID[:GID]. A uid without a name has a group of its own
// number: docker's choice, group 0, would share the sandbox root's files.
func parseUser(text string) (agent.User, error) {
	const hint = "write agent, root or numbers such as 1000:1000, at most 65532"
	name, group, hasGroup := strings.Cut(text, ":")
	user, err := findUser(name)
	if err != nil {
		return agent.User{}, invalid(flagUser, hint, "there is no user %q inside", name)
	}
	if hasGroup {
		named, err := findUser(group)
		if err != nil {
			return agent.User{}, invalid(flagUser, hint, "there is no group %q inside", group)
		}
		user.GID = named.GID
	}
	return user, nil
}

// findUser knows the two names and every number. All but root share the
// agent's home directory, which belongs to whoever the agent is.
func findUser(text string) (agent.User, error) {
	for _, known := range namedUsers {
		if text == known.Name || text == strconv.FormatUint(uint64(known.UID), 10) {
			return known, nil
		}
	}
	id, err := strconv.ParseUint(text, 10, 32)
	if err != nil || id > agent.MaxUser {
		return agent.User{}, strconv.ErrRange
	}
	return agent.User{Name: strconv.FormatUint(id, 10), UID: uint32(id), GID: uint32(id), Home: policies.AgentUser.Home}, nil
}

// stem is the script's or program's name as a name may look.
func (r *request) stem() string {
	stem := r.script
	if stem == "" {
		stem = r.args[0]
	}
	stem = filepath.Base(stem)
	stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	stem = strings.Map(func(c rune) rune {
		if agent.ValidateName("x"+string(c)) != nil {
			return '-'
		}
		return c
	}, stem)
	stem = strings.TrimLeft(stem, "-._")
	if stem == "" {
		stem = "run"
	}
	return stem
}

// nameRun gives a run without --name the script's or program's name and the
// first digits of its ID, which make it unique.
func (r *request) nameRun() error {
	if r.spec.Name != "" {
		return nil
	}
	stem := r.stem()
	r.spec.Name = stem[:min(len(stem), 40)] + "-" + string(r.spec.ID)[:8]
	return agent.ValidateName(r.spec.Name)
}
