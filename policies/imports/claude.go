package imports

import (
	_ "embed"
	"strings"

	"clove.run/clove/agent"
)

// claudeOwn are settings of the program itself: its models, its looks, its tools and hooks, which
// run where it runs. Source: the type Settings of @anthropic-ai/claude-agent-sdk 0.3.330.
//
//go:embed claude_own.txt
var claudeOwn string

// claudeRows are the settings of Claude Code 2.1.330.
func claudeRows() rows {
	return withOwn(rows{
		"sandbox":     func(r *reader, at string, v any) { r.each(at, v, claudeSandbox()) },
		"permissions": func(r *reader, at string, v any) { r.each(at, v, claudePermissions()) },
		"env":         (*reader).variables,
	}, claudeOwn)
}

// withOwn adds rows for settings of the program itself.
func withOwn(known rows, names string) rows {
	for name := range strings.FieldsSeq(names) {
		known[name] = program
	}
	return known
}

// claude reads the file. Commands there may always write the working directory and a directory
// for temporary files.
func (r *reader) claude(root map[string]any) {
	r.stays(agent.WorkspaceDir, "the working directory: a copy on write, which clove apply brings back")
	r.stays("/tmp", "the run's own, as the directory for temporary files there")
	r.each("", root, claudeRows())
}

// noApproval is why what asks a person is refused.
const noApproval = "it asks a person, and a sandbox asks no questions: the user who starts the run decides"

func claudeSandbox() rows {
	return rows{
		"enabled":                  always("carried: a run always has a sandbox", "narrowed: a run always has a sandbox"),
		"failIfUnavailable":        always("carried: a run that cannot be held does not start", "narrowed: a run that cannot be held does not start"),
		"allowUnsandboxedCommands": always("narrowed: no command runs outside of the sandbox", "carried: no command runs outside of the sandbox"),
		"autoAllowBashIfSandboxed": func(r *reader, at string, v any) {
			if r.truth(at, v) {
				r.note(at, "carried: a sandbox asks no questions")
			} else {
				r.refuse(at, noApproval)
			}
		},
		"excludedCommands": func(r *reader, at string, v any) {
			r.items(at, v, func(setting, _ string) {
				r.refuse(setting, "it names commands as text to run outside: every command runs inside")
			})
		},
		"network":     func(r *reader, at string, v any) { r.each(at, v, claudeNetwork()) },
		"filesystem":  func(r *reader, at string, v any) { r.each(at, v, filesystemRows()) },
		"credentials": func(r *reader, at string, v any) { r.each(at, v, credentialRows()) },

		"allowAppleEvents":             becomes(ofMacOS),
		"allowNestedUserNamespaces":    runtimeRows()["allowNestedUserNamespaces"],
		"enableWeakerNestedSandbox":    runtimeRows()["enableWeakerNestedSandbox"],
		"enableWeakerNetworkIsolation": becomes(ofMacOS),

		"bwrapPath":        program,
		"ignoreViolations": program,
		"ripgrep":          program,
		"socatPath":        program,
	}
}

// claudeNetwork are those of sandbox-runtime that Claude Code has, too, and one more.
func claudeNetwork() rows {
	return rows{
		"allowedDomains":          runtimeNetwork()["allowedDomains"],
		"deniedDomains":           runtimeNetwork()["deniedDomains"],
		"strictAllowlist":         runtimeNetwork()["strictAllowlist"],
		"allowManagedDomainsOnly": becomes("carried: only this file is imported"),
		"allowUnixSockets":        runtimeNetwork()["allowUnixSockets"],
		"allowAllUnixSockets":     runtimeNetwork()["allowAllUnixSockets"],
		"allowLocalBinding":       runtimeNetwork()["allowLocalBinding"],
		"allowMachLookup":         runtimeNetwork()["allowMachLookup"],
		"httpProxyPort":           refuses(ownGate),
		"socksProxyPort":          refuses(ownGate),
		"tlsTerminate":            refuses(ownGate),
	}
}

func claudePermissions() rows {
	return rows{
		"allow": func(r *reader, at string, v any) { r.items(at, v, r.allowRule) },
		"deny":  func(r *reader, at string, v any) { r.items(at, v, r.denyRule) },
		"ask": func(r *reader, at string, v any) {
			r.items(at, v, func(setting, _ string) { r.refuse(setting, noApproval) })
		},
		"defaultMode": func(r *reader, at string, v any) {
			if r.text(at, v) == "bypassPermissions" {
				r.note(at, "carried: a sandbox asks no questions")
			} else {
				r.refuse(at, noApproval)
			}
		},
		"additionalDirectories": paths(func(r *reader, p place) { r.writes = append(r.writes, p) }),

		"blockReadsOutsideWorkingDirectories":  becomes("narrowed: the base system can be read, too, as programs need it"),
		"blockWritesOutsideWorkingDirectories": becomes("carried: nothing else is writable but what is the run's own and what volumes name"),
		"blockReadsExemptPaths":                refuses("it belongs to the program that starts Claude Code"),
		"workingDirectoriesAsGiven":            refuses("it belongs to the program that starts Claude Code"),
		"workingDirectoriesExclude":            refuses("it belongs to the program that starts Claude Code"),

		"denyInsteadOfPrompting":       program,
		"disableAutoMode":              program,
		"disableBypassPermissionsMode": program,
	}
}

// variables reads a table of variables and their values.
func (r *reader) variables(at string, value any) {
	table := r.table(at, value)
	for _, name := range sortedKeys(table) {
		setting := join(at, name)
		text := r.text(setting, table[name])
		switch {
		case r.mistake != nil || r.skips(setting):
		case !isVariable(name):
			r.refuse(setting, "it is no name of a variable")
		case strings.Contains(text, "\x00"):
			r.refuse(setting, "a NUL cannot be in a variable")
		default:
			r.env[name], r.ofEnv = text, at
		}
	}
}

func isVariable(name string) bool {
	letters := strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
	return name != "" && letters == "" && (name[0] < '0' || name[0] > '9')
}
