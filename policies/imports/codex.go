package imports

import (
	_ "embed"

	"clove.run/clove/agent"
)

// codexOwn are settings of the program itself. Source: codex-rs/config/src/config_toml.rs and
// the configuration reference of Codex.
//
//go:embed codex_own.txt
var codexOwn string

// codexRows are the settings of Codex 0.169. Those that mean something only together are kept
// for codex.
func codexRows() rows {
	return withOwn(rows{
		"sandbox_mode":            keep,
		"sandbox_workspace_write": keep,
		"default_permissions":     keep,
		"permissions":             keep,
		"features": func(r *reader, at string, v any) {
			table := r.table(at, v)
			known := rows{"network_proxy": keep}
			for name := range table {
				if known[name] == nil {
					known[name] = program
				}
			}
			r.each(at, table, known)
		},
		"approval_policy": func(r *reader, at string, v any) {
			if v == "never" {
				r.note(at, "carried: a sandbox asks no questions")
			} else {
				r.refuse(at, noApproval)
			}
		},
		"profile": refuses("it chooses a profile of the file: write the profile's settings at the top"),
		"shell_environment_policy": func(r *reader, at string, v any) {
			r.each(at, v, rows{
				"inherit":                  becomes("narrowed: no variable of the caller's is inherited"),
				"ignore_default_excludes":  becomes("narrowed: no variable of the caller's is inherited"),
				"exclude":                  becomes("carried: no variable of the caller's is inherited"),
				"include_only":             becomes("narrowed: no variable of the caller's is inherited"),
				"filters":                  becomes("narrowed: no variable of the caller's is inherited"),
				"set":                      (*reader).variables,
				"experimental_use_profile": program,
			})
		},
	}, codexOwn)
}

// keep is the row of a setting that is read when all are known.
func keep(r *reader, at string, value any) {
	if r.kept == nil {
		r.kept = map[string]any{}
	}
	r.kept[at] = value
}

// codex reads the file. sandbox_mode beats permission profiles, as it does there.
func (r *reader) codex(root map[string]any) {
	r.each("", root, codexRows())
	r.codexSandbox()
	if at := "features.network_proxy"; r.kept[at] != nil && !r.proxied {
		r.note(at, "without effect: the network is off")
	}
}

func (r *reader) codexSandbox() {
	mode, chosen := r.kept["sandbox_mode"], r.kept["default_permissions"]
	switch {
	case mode != nil:
		for _, other := range []string{"default_permissions", "permissions"} {
			if r.kept[other] != nil {
				r.note(other, "without effect: Codex reads it only where sandbox_mode is absent")
			}
		}
		r.codexMode(r.text("sandbox_mode", mode))
		return
	case chosen != nil:
		if r.kept["sandbox_workspace_write"] != nil {
			r.note("sandbox_workspace_write", "without effect: Codex reads it only with sandbox_mode")
		}
		r.codexProfile(r.text("default_permissions", chosen))
		return
	}
	r.note("sandbox_mode", "absent: read-only, as in a directory that is not trusted")
	for _, other := range []string{"permissions", "sandbox_workspace_write"} {
		if r.kept[other] != nil {
			r.note(other, "without effect: neither sandbox_mode nor default_permissions chooses it")
		}
	}
}

func (r *reader) codexMode(mode string) {
	const table = "sandbox_workspace_write"
	if mode != "workspace-write" && r.kept[table] != nil {
		r.note(table, "without effect: it is for sandbox_mode workspace-write")
	}
	switch mode {
	case "read-only":
		r.note("sandbox_mode", "carried: the workspace is read-only, and nothing is reached")
	case "danger-full-access":
		r.refuse("sandbox_mode", "it is the host without a sandbox: no policy opens that")
	case "workspace-write":
		r.stays(agent.WorkspaceDir, "sandbox_mode: a copy on write, which clove apply brings back")
		r.codexWorkspace(table)
	default:
		r.refuse("sandbox_mode", "it is none of read-only, workspace-write and danger-full-access")
	}
}

// codexWorkspace reads the settings of the mode workspace-write.
func (r *reader) codexWorkspace(at string) {
	value := r.kept[at]
	if value == nil {
		value = map[string]any{}
	}
	slashTmp, network := true, false
	r.each(at, value, rows{
		"writable_roots":         paths(func(r *reader, p place) { r.writes = append(r.writes, p) }),
		"network_access":         func(r *reader, at string, v any) { network = r.truth(at, v) },
		"exclude_tmpdir_env_var": becomes("carried: TMPDIR is not inherited"),
		"exclude_slash_tmp":      func(r *reader, at string, v any) { slashTmp = !r.truth(at, v) },
	})
	if slashTmp {
		r.stays("/tmp", "the run's own, not the host's")
	}
	if network {
		r.codexNetwork(at+".network_access", nil, "")
	}
}

// codexNetwork reads the rules for names, if there are any. Codex applies them only where its
// proxy runs; here they always hold.
func (r *reader) codexNetwork(setting string, domains map[string]any, at string) {
	proxy, on := r.kept["features.network_proxy"], false
	r.proxied = true
	switch v := proxy.(type) {
	case nil:
	case bool:
		on = v
	default:
		known := rows{"enabled": func(r *reader, at string, v any) { on = r.truth(at, v) }, "domains": func(r *reader, at string, v any) { r.domains(at, r.table(at, v)) }}
		for name, read := range codexProxy() {
			known[name] = read
		}
		r.each("features.network_proxy", proxy, known)
	}
	r.domains(at, domains)
	switch rules := len(r.allow)+len(r.ports) > 0 || r.public != ""; {
	case r.mistake != nil || rules && on:
	case rules:
		r.note(setting, "narrowed: the rules for names hold here, also without features.network_proxy")
	case on || len(r.deny) > 0:
		r.note(setting, "narrowed: no rule allows a name, so nothing is reached")
	default:
		r.public = setting
		r.note(setting, "narrowed: the internet is reached, and no private network and not the host")
	}
}

// codexProxy are settings of the proxy, in features.network_proxy and in a profile's network.
func codexProxy() rows {
	return rows{
		"unix_sockets":                         (*reader).unixSockets,
		"allow_local_binding":                  refuses("it opens private networks and the host: allow the addresses by themselves"),
		"dangerously_allow_all_unix_sockets":   refuses(hostSocket),
		"dangerously_allow_non_loopback_proxy": refuses(ownGate),
		"mitm":                                 refuses(ownGate),
		"mode": func(r *reader, at string, v any) {
			if r.text(at, v) != "full" {
				r.refuse(at, "it compares the methods of requests: %s", ownGate)
			}
		},
		"allow_upstream_proxy": program,
		"enable_socks5":        program,
		"enable_socks5_udp":    program,
		"proxy_url":            program,
		"socks_url":            program,
	}
}

// unixSockets reads a table of sockets of the host.
func (r *reader) unixSockets(at string, value any) {
	for _, name := range sortedKeys(r.table(at, value)) {
		setting := at + "." + name
		if access := r.table(at, value)[name]; !r.skips(setting) && access != "deny" && access != "none" {
			r.refuse(setting, hostSocket)
		}
	}
}
