package imports

import (
	"maps"
	"slices"
	"strings"

	"clove.run/clove/policies"
)

// Roots of Codex's rules for files. The workspace had another name until 0.131.
const (
	rootToken      = ":root"
	minimalToken   = ":minimal"
	workspaceToken = ":workspace_roots"
	formerToken    = ":project_roots"
	tmpdirToken    = ":tmpdir"
	slashTmpToken  = ":slash_tmp"
)

// fileRule is a rule of a permission profile.
type fileRule struct{ setting, root, sub, access string }

// builtinProfiles are the rules of Codex's own profiles.
func builtinProfiles() map[string][]fileRule {
	return map[string][]fileRule{
		":read-only": {{":read-only", rootToken, ".", "read"}},
		":workspace": {{":workspace", rootToken, ".", "read"}, {":workspace", workspaceToken, ".", "write"}, {":workspace", tmpdirToken, ".", "write"},
			{":workspace", slashTmpToken, ".", "write"}},
	}
}

// profile is what a profile and all that it extends say.
type profile struct {
	rules   []fileRule
	roots   []place // further workspaces
	network string  // the setting that enables it
	domains map[string]any
	at      string // of domains
}

// mostProfiles bounds a chain of profiles.
const mostProfiles = 16

// codexProfile reads the profile that default_permissions names.
func (r *reader) codexProfile(name string) {
	if name == ":danger-full-access" {
		r.refuse("default_permissions", "it is the host without a sandbox: no policy opens that")
		return
	}
	p := &profile{domains: map[string]any{}}
	if !r.profileChain(p, "default_permissions", name, nil) || r.mistake != nil {
		return
	}
	r.fileRules(p)
	if p.network != "" {
		r.codexNetwork(p.network, p.domains, p.at)
	}
}

// profileChain reads the parents first, so that a child's rule replaces theirs.
func (r *reader) profileChain(p *profile, at, name string, chain []string) bool {
	if rules, ok := builtinProfiles()[name]; ok {
		p.rules = append(p.rules, rules...)
		return true
	}
	var all map[string]any
	if r.kept["permissions"] != nil {
		all = r.table("permissions", r.kept["permissions"])
	}
	if all[name] == nil {
		names := slices.Concat(sortedKeys(all), []string{":read-only", ":workspace"})
		r.refuse(at, "there is no profile %q: %s", name, policies.Meant(name, names, "those that exist are "+few(names)))
		return false
	}
	if slices.Contains(chain, name) || len(chain) == mostProfiles {
		r.refuse(at, "its profiles extend one another")
		return false
	}
	here := join("permissions", name)
	table := r.table(here, all[name])
	if parent := table["extends"]; parent != nil && !r.skips(here+".extends") {
		if !r.profileChain(p, here+".extends", r.text(here+".extends", parent), append(chain, name)) {
			return false
		}
	}
	r.each(here, table, rows{
		"extends":     func(*reader, string, any) {},
		"description": program,
		"workspace_roots": func(r *reader, at string, v any) {
			for _, root := range sortedKeys(r.table(at, v)) {
				if setting := join(at, root); !r.skips(setting) && r.truth(setting, r.table(at, v)[root]) {
					if place, ok := r.place(setting, root, true); ok && r.isRooted(place) {
						p.roots = append(p.roots, place)
					}
				}
			}
		},
		"filesystem": func(r *reader, at string, v any) { r.profileFiles(p, at, r.table(at, v)) },
		"network":    func(r *reader, at string, v any) { r.profileNetwork(p, at, v) },
	})
	return true
}

// profileFiles collects rules. A rule replaces a parent's for the same path.
func (r *reader) profileFiles(p *profile, at string, table map[string]any) {
	add := func(setting, root, sub string, value any) {
		if r.skips(setting) {
			return
		}
		access := r.text(setting, value)
		if access == "none" {
			access = "deny" // its former name
		}
		if !slices.Contains([]string{"read", "write", "deny"}, access) {
			r.refuse(setting, "it is none of read, write and deny")
			return
		}
		p.rules = slices.DeleteFunc(p.rules, func(have fileRule) bool { return have.root == root && have.sub == sub })
		p.rules = append(p.rules, fileRule{setting, root, sub, access})
	}
	for _, root := range sortedKeys(table) {
		setting, name := join(at, root), root
		if name == formerToken {
			name = workspaceToken
		}
		scoped, nested := table[root].(map[string]any)
		switch {
		case root == "glob_scan_max_depth":
			program(r, setting, nil)
		case !nested:
			add(setting, name, ".", table[root])
		case !r.skips(setting):
			for _, sub := range sortedKeys(scoped) {
				add(join(setting, sub), name, sub, scoped[sub])
			}
		}
	}
}

func (r *reader) profileNetwork(p *profile, at string, value any) {
	known := rows{
		"enabled": func(r *reader, at string, v any) {
			if p.network = ""; r.truth(at, v) {
				p.network = at
			}
		},
		"domains": func(r *reader, at string, v any) {
			p.at = at
			maps.Copy(p.domains, r.table(at, v))
		},
	}
	maps.Copy(known, codexProxy())
	r.each(at, value, known)
}

// fileRules turns the rules into wishes.
func (r *reader) fileRules(p *profile) {
	access := func(root string) string {
		for _, rule := range p.rules {
			if rule.root == root && rule.sub == "." {
				return rule.access
			}
		}
		return ""
	}
	for _, rule := range p.rules {
		if !strings.HasPrefix(rule.root, ":") {
			r.pathRule(rule)
			continue
		}
		switch rule.root + " " + rule.access {
		case rootToken + " read":
			r.note(rule.setting, "narrowed: the base system and the workspace appear, and nothing else of the host")
		case rootToken + " deny":
			if access(minimalToken) != "read" {
				r.refuse(rule.setting, "the base system always appears: add :minimal with read")
			}
		case minimalToken + " read":
			r.note(rule.setting, "carried: the base system appears")
		case workspaceToken + " read", workspaceToken + " write", workspaceToken + " deny":
			r.workspaceRule(rule)
		case tmpdirToken + " write":
			r.stays("/tmp", rule.setting+": the run's own; TMPDIR is not inherited")
		case slashTmpToken + " write":
			r.stays("/tmp", rule.setting+": the run's own, not the host's")
		case tmpdirToken + " read", tmpdirToken + " deny", slashTmpToken + " read", slashTmpToken + " deny":
			r.note(rule.setting, "carried: the host's does not appear; the run has its own")
		default:
			r.refuse(rule.setting, "no such place is known, or it cannot have this access")
		}
	}
	for _, root := range p.roots {
		if access(workspaceToken) == "write" {
			r.writes = append(r.writes, root)
		} else {
			r.reads = append(r.reads, root)
		}
	}
}

// workspaceRule reads a rule for the workspace or a part of it.
func (r *reader) workspaceRule(rule fileRule) {
	p, ok := r.place(rule.setting, rule.sub, false)
	switch {
	case !ok:
	case !p.ofWorkspace():
		r.refuse(rule.setting, "a part of the workspace is a relative path")
	case rule.access == "write":
		r.writes = append(r.writes, p)
	case rule.access == "deny":
		r.hides = append(r.hides, p)
	case rule.sub == ".":
		r.note(rule.setting, "carried: the workspace appears, and is read-only")
	default:
		r.keeps = append(r.keeps, p)
	}
}

// pathRule reads a rule for a path of the host. A path that may be read may not be written,
// whatever a wider rule says.
func (r *reader) pathRule(rule fileRule) {
	text := rule.root
	if rule.sub != "." {
		text = strings.TrimSuffix(text, "/") + "/" + rule.sub
	}
	p, ok := r.place(rule.setting, text, false)
	switch {
	case !ok:
	case p.ofWorkspace():
		r.refuse(rule.setting, "a path of the host is absolute, or begins with ~/")
	case rule.access == "write":
		r.writes = append(r.writes, p)
	case rule.access == "deny":
		r.hides = append(r.hides, p)
	default:
		r.reads, r.keeps = append(r.reads, p), append(r.keeps, p)
	}
}

// domains reads rules for names. **.example.com is the name and each below it.
func (r *reader) domains(at string, table map[string]any) {
	for _, pattern := range sortedKeys(table) {
		setting := join(at, pattern)
		if r.skips(setting) {
			continue
		}
		add := map[string]func(setting, text string){"allow": r.allowName, "deny": r.denyName}[r.text(setting, table[pattern])]
		name, both := strings.CutPrefix(pattern, "**.")
		switch {
		case add == nil:
			r.refuse(setting, "it is neither allow nor deny")
		case pattern == "*" && table[pattern] == "allow":
			r.public = setting
		case both:
			add(setting, name)
			add(setting, "*."+name)
		default:
			add(setting, pattern)
		}
	}
}

func sortedKeys(table map[string]any) []string { return slices.Sorted(maps.Keys(table)) }
