package imports

import (
	"path"
	"strings"
)

// Texts that several systems share.
const (
	ofMacOS    = "narrowed: it is for macOS, and nothing here needs it"
	ofWindows  = "narrowed: it is for Windows, and nothing here needs it"
	ownGate    = "connections pass clove's own gate, which cannot do it"
	hostSocket = "a socket of the host does not appear inside"
	copied     = "carried: such files are in the workspace, which is a copy, and clove apply asks before it brings them back"
)

// runtimeRows are the settings of @anthropic-ai/sandbox-runtime 0.0.83.
func runtimeRows() rows {
	return rows{
		"network":     func(r *reader, at string, v any) { r.each(at, v, runtimeNetwork()) },
		"filesystem":  runtimeFiles,
		"credentials": func(r *reader, at string, v any) { r.each(at, v, credentialRows()) },

		"allowAppleEvents":             becomes(ofMacOS),
		"allowNestedUserNamespaces":    becomes("narrowed: the standard filter refuses further user namespaces"),
		"allowPty":                     becomes(ofMacOS),
		"enableWeakerNestedSandbox":    becomes("narrowed: the sandbox stays as strong as it is"),
		"enableWeakerNetworkIsolation": becomes(ofMacOS),
		"windows":                      becomes(ofWindows),

		"bwrapPath":                program,
		"git":                      program,
		"ignoreViolations":         program,
		"javaAgentJarPath":         program,
		"mandatoryDenySearchDepth": program,
		"ripgrep":                  program,
		"seccomp":                  program,
		"socatPath":                program,
	}
}

// runtimeFiles reads the rules for files. /tmp/claude is always writable there.
func runtimeFiles(r *reader, at string, value any) {
	r.stays("/tmp", "the run's own: sandbox-runtime always lets a part of it be written")
	r.each(at, value, filesystemRows())
}

// filesystemRows are those of sandbox-runtime and of Claude Code's sandbox.
func filesystemRows() rows {
	return rows{
		"allowRead":      paths(func(r *reader, p place) { r.reads = append(r.reads, p) }),
		"allowWrite":     paths(func(r *reader, p place) { r.writes = append(r.writes, p) }),
		"denyRead":       paths(func(r *reader, p place) { r.hides = append(r.hides, p) }),
		"denyWrite":      paths(func(r *reader, p place) { r.keeps = append(r.keeps, p) }),
		"allowGitConfig": becomes(copied),
		"disabled":       refuses("it opens the whole host: no policy does"),

		"allowManagedReadPathsOnly": becomes("carried: only this file is imported"),
	}
}

// paths is the row of a list of paths. Each is a text, or a table that says that the text has
// no wildcards.
func paths(add func(*reader, place)) row {
	return func(r *reader, at string, value any) {
		list, ok := value.([]any)
		if !ok {
			r.wrong(at, "a list of paths")
		}
		for _, item := range list {
			literal := false
			if table, ok := item.(map[string]any); ok {
				item = table["path"]
				literal = r.truth(at, table["literal"])
			}
			text := r.text(at, item)
			if setting := at + "=" + text; r.mistake == nil && !r.skips(setting) {
				if p, ok := r.place(setting, r.rooted(text), literal); ok && r.isRooted(p) {
					add(r, p)
				}
			}
		}
	}
}

// rooted turns // into /: Claude Code writes absolute paths with either.
func (r *reader) rooted(text string) string {
	if r.file.System == ClaudeCode && len(text) > 1 && text[:2] == "//" {
		return text[1:]
	}
	return text
}

// isRooted refuses relative paths that do not begin at the workspace: those of Codex begin at
// its configuration, those of the user's own settings of Claude Code at these.
func (r *reader) isRooted(p place) bool {
	switch {
	case !p.ofWorkspace():
	case r.file.System == Codex:
		r.refuse(p.setting, "it begins at the directory of the file: write the whole path")
		return false
	case r.file.System == ClaudeCode && r.file.Path == path.Join(r.file.Home, ".claude/settings.json") && strings.HasPrefix(p.setting, "sandbox."):
		r.refuse(p.setting, "in the user's own settings it is below ~/.claude: write the whole path")
		return false
	}
	return true
}

// runtimeNetwork are the settings of network.
func runtimeNetwork() rows {
	return rows{
		"allowedDomains": func(r *reader, at string, v any) { r.items(at, v, r.allowName) },
		"deniedDomains":  func(r *reader, at string, v any) { r.items(at, v, r.denyName) },
		"deniedResolvedAddresses": func(r *reader, at string, v any) {
			r.items(at, v, func(setting, text string) { r.denyAddress(setting, text) })
		},
		"deniedDomainReasons": becomes("narrowed: clove's own words say why a connection is refused"),
		"strictAllowlist":     always("carried: there is no question for what is not allowed", "narrowed: there is no question, and what is not allowed is refused"),
		"allowUnixSockets":    refuses(hostSocket),
		"allowAllUnixSockets": always("narrowed: sockets inside can be used, and those of the host do not appear", "carried: no socket of the host appears"),
		"allowLocalBinding": always("carried: the loopback inside is the run's own, and each port of it can be used",
			"carried: ports on the loopback inside can be used, and cannot be reached from outside"),
		"allowMachLookup": becomes(ofMacOS),

		"allowPlaintextHeaderSet": refuses(ownGate),
		"ambiguousRequestTarget":  refuses(ownGate),
		"filterRequest":           refuses(ownGate),
		"httpProxyPort":           refuses(ownGate),
		"mitmProxy":               refuses(ownGate),
		"parentProxy":             refuses(ownGate),
		"refuseOpaqueTunnels":     refuses(ownGate),
		"requireHostMatch":        refuses(ownGate),
		"socksProxyPort":          refuses(ownGate),
		"stripResponseHeaders":    refuses(ownGate),
		"tlsTerminate":            refuses(ownGate),
	}
}

// credentialRows are those of sandbox-runtime and of Claude Code's sandbox.
func credentialRows() rows {
	return rows{
		"files":                func(r *reader, at string, v any) { r.credentials(at, v, "path") },
		"envVars":              func(r *reader, at string, v any) { r.credentials(at, v, "name") },
		"allowPlaintextInject": refuses(ownGate),
		"awsPairs":             refuses(ownGate),
		"sigv4":                refuses(ownGate),
	}
}

// credentials reads files and variables that a command does not see. A setting that replaces them
// by another value on the way is refused.
func (r *reader) credentials(at string, value any, key string) {
	list, ok := value.([]any)
	if !ok {
		r.wrong(at, "a list of tables")
	}
	for _, item := range list {
		table := r.table(at, item)
		text := r.text(at, table[key])
		setting := at + "=" + text
		switch {
		case r.mistake != nil || r.skips(setting):
		case table["mode"] != "deny":
			r.refuse(setting, "only the mode deny can be held: %s", ownGate)
		case key == "name":
			r.note(setting, "carried: no variable of the caller's is inherited")
		default:
			if p, ok := r.place(setting, r.rooted(text), false); ok {
				r.hides = append(r.hides, p)
			}
		}
	}
}
