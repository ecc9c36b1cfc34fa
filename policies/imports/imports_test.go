package imports

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// example reads a file of testdata.
func example(t testing.TB, name string) File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return File{Text: text, Path: path, Name: "imported", Home: "/home/me"}
}

func TestEachSystemBecomesADocument(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		file string
		want []string // lines, or parts of them
	}{
		{"runtime.json", []string{
			"made by clove policy import", "extends: standard",
			`  files.volumes: "filesystem.allowRead, filesystem.allowWrite of `, `  network: "network.allowedDomains of `,
			"root: read-only", "- /workspace # filesystem.allowWrite=.: a copy on write", "- /tmp # the run's own",
			`- "/home/me/cache[1]:/home/agent/cache[1]" # filesystem.allowWrite=~/cache[1]`, `- "/home/me/notes:/home/agent/notes:ro" # filesystem.allowRead=~/notes`,
			"mode: allowlist", `- "api.example.com" # network.allowedDomains=API.Example.com: each port there, 80 and 443 here`, `- "*.example.org:8443" #`, `- "[2001:db8::7]:443" #`,
			`- "tracker.example.org" #`, `- "10.0.0.0/8" #`, `- "[fd00::]/8" #`, "- 3000 # network.allowedDomains=localhost:3000",
			"# filesystem.denyRead=~/.ssh: carried", "# filesystem.denyRead=/etc/shadow: carried", "# filesystem.denyWrite=/etc: carried",
			"# network.strictAllowlist: carried", "# credentials.envVars=TOKEN: carried", "of the program itself, no sandbox holds them: ripgrep",
		}},
		{"claude.json", []string{
			`- "*.example.com" #`, `- "docs.example.org" # permissions.allow=WebFetch(domain:docs.example.org)`, `- "bad.example.com" # permissions.deny=`,
			`- "/data/build:/data/build" # sandbox.filesystem.allowWrite=//data/build`, `- "/home/me/papers:/home/agent/papers:ro" # permissions.allow=Read(~/papers/**)`,
			"- /workspace # the working directory", "permissions.allow=Edit(/src/**): as a whole", `"LANG": "C.UTF-8"`,
			"# permissions.deny=Read(~/.ssh/**): carried", "# permissions.deny=Edit(~/.profile): carried", "# permissions.allow=Bash: carried", "# permissions.allow=WebSearch: narrowed",
			"no sandbox holds them: $schema, model",
		}},
		{"codex.toml", []string{
			"mode: public", `network: "sandbox_workspace_write.network_access of `, `- "/data/cache:/data/cache" # sandbox_workspace_write.writable_roots=/data/cache`, `"CI": "1"`,
			"# approval_policy: carried", "# sandbox_workspace_write.network_access: narrowed", "# sandbox_workspace_write.exclude_tmpdir_env_var: carried", "- /workspace # sandbox_mode",
		}},
		{"profile.toml", []string{
			"mode: allowlist", `- "example.com" # permissions.edit.network.domains.**.example.com`, `- "*.example.com" #`, `- "ads.example.com" #`,
			`- "/home/me/library:/home/agent/library" # permissions.edit.workspace_roots.~/library`, `- "/data/in:/data/in:ro" # permissions.edit.filesystem./data/in`,
			"# permissions.edit.filesystem.~/.ssh: carried", "- /workspace # :workspace", "- /tmp # :workspace",
		}},
		{"filter.json", []string{"seccomp: \"/", `seccomp: "the filter is that of the file of `, "# DANGEROUS, ", "it allows bpf"}},
	} {
		text, err := Import(example(t, row.file))
		if err != nil {
			t.Errorf("%s: %v", row.file, err)
			continue
		}
		for _, want := range row.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q:\n%s", row.file, want, text)
			}
		}
	}
	// An excluded folder is not writable.
	text, err := Import(example(t, "codex.toml"))
	if err != nil || strings.Contains(string(text), "- /tmp") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestDocumentsResolve: nothing is wider than the level standard without a reason, and every
// value can be used. The directories of the host are made for the test.
func TestDocumentsResolve(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"runtime.json", "claude.json", "codex.toml", "profile.toml", "filter.json"} {
		dir := t.TempDir()
		file := example(t, name)
		file.Home = dir
		file.Text = []byte(strings.ReplaceAll(string(file.Text), "/data/", dir+"/"))
		for _, made := range []string{"cache[1]", "notes", "papers", "library", "build", "cache", "in"} {
			if err := os.Mkdir(filepath.Join(dir, made), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		text, err := Import(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		h, err := host.Current()
		if err != nil {
			t.Fatal(err)
		}
		document := filepath.Join(dir, "imported.yaml")
		if err := os.WriteFile(document, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := resolve.LoadPolicy(document, h); err != nil {
			t.Errorf("%s: %v (%s)\n%s", name, err, agent.FailureOf(err).Hint, text)
		}
	}
}

// importJSON imports a text, whatever its system.
func importJSON(text string, skip ...string) (string, error) {
	document, err := Import(File{Text: []byte(text), Path: "/etc/some/settings", Name: "imported", Home: "/home/me", Skip: skip})
	return string(document), err
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, want string }{
		// sandbox-runtime
		{`{"filesystem": {"denyRead": [".env"]}}`, "filesystem.denyRead=.env (the workspace appears as a whole"},
		{`{"filesystem": {"denyRead": ["**/.env"]}}`, "the workspace appears as a whole"},
		{`{"filesystem": {"denyRead": ["/usr/share/x"]}}`, "/usr of the base system appears"},
		{`{"filesystem": {"denyRead": ["/"]}}`, "of the base system appears"},
		{`{"filesystem": {"denyRead": ["/**/*.pem"]}}`, "of the base system appears"},
		{`{"filesystem": {"denyRead": ["~/a/key"], "allowWrite": ["~/a"]}}`, "filesystem.allowWrite=~/a shows it"},
		{`{"filesystem": {"denyRead": ["~/*/key"], "allowWrite": ["~/"]}}`, "it is the whole home"},
		{`{"filesystem": {"denyWrite": [".git"], "allowWrite": ["."]}}`, "filesystem.denyWrite=.git (the workspace is writable as a whole"},
		{`{"filesystem": {"denyWrite": ["/data/x"], "allowWrite": ["/data"]}}`, "filesystem.allowWrite=/data makes it writable"},
		{`{"filesystem": {"denyWrite": ["/data"], "allowWrite": ["/data/x"]}}`, "makes it writable"},
		{`{"filesystem": {"allowWrite": ["/etc"]}}`, "it belongs to the host's system"},
		{`{"filesystem": {"allowWrite": ["/"]}}`, "it holds the files of many"},
		{`{"filesystem": {"allowWrite": ["/proc/self"]}}`, "it is the kernel's own"},
		{`{"filesystem": {"allowWrite": ["../other"]}}`, "it leaves the workspace"},
		{`{"filesystem": {"allowWrite": ["/data/*.log"]}}`, "a pattern is no directory"},
		{`{"filesystem": {"allowWrite": ["~other/x"]}}`, "the home of another user"},
		{`{"filesystem": {"allowWrite": ["/data:x"]}}`, "a colon"},
		{`{"filesystem": {"denyRead": ["/data/*/key"], "allowWrite": ["/data/a"]}}`, "filesystem.allowWrite=/data/a shows it"},
		{`{"filesystem": {"disabled": true}}`, "filesystem.disabled (it opens the whole host"},
		{`{"network": {"allowedDomains": ["localhost"]}}`, "name the port"},
		{`{"network": {"allowedDomains": ["[::1]:80"]}}`, "name the port of 127.0.0.1"},
		{`{"network": {"allowedDomains": ["private"]}}`, "no name of a host with a dot"},
		{`{"network": {"allowedDomains": ["*.com"]}}`, "a wildcard needs at least two labels"},
		{`{"network": {"allowedDomains": ["https://a.example"]}}`, "network.allowedDomains=https://a.example ("},
		{`{"network": {"allowedDomains": ["10.0.0.0/8"]}}`, "no name of a host"},
		{`{"network": {"allowedDomains": ["a.example:*"]}}`, `"*" is no port`},
		{`{"network": {"allowUnixSockets": ["/var/run/docker.sock"]}}`, "network.allowUnixSockets (a socket of the host"},
		{`{"network": {"httpProxyPort": 8080, "tlsTerminate": {"x": 1}}}`, "2 of the settings cannot be carried: network.httpProxyPort ("},
		{`{"network": {"allowedDomian": []}}`, "no such setting is known; did you mean allowedDomains?"},
		{`{"credentials": {"envVars": [{"name": "K", "mode": "mask"}]}}`, "credentials.envVars=K (only the mode deny"},
		{`{"network": {"allowedDomains": "a.example"}}`, "network.allowedDomains: a list of texts belongs there"},
		{`{"network": 7}`, "network: a table of keys belongs there"},
		{`{"filesystem": {"allowWrite": [7]}}`, "a text belongs there"},
		// Claude Code
		{`{"permissions": {"allow": ["Bash(npm run:*)"]}}`, "permissions.allow=Bash(npm run:*) (it compares a command as text"},
		{`{"permissions": {"deny": ["Bash(curl:*)", "WebSearch", "Read", "Frob(x)", "Read(./.env)"]}}`, "5 of the settings"},
		{`{"permissions": {"ask": ["Edit(src/**)"]}}`, "permissions.ask=Edit(src/**) (it asks a person"},
		{`{"permissions": {"defaultMode": "plan"}}`, "permissions.defaultMode (it asks a person"},
		{`{"permissions": {"allow": ["WebFetch"]}}`, "it names no domain"},
		{`{"permissions": {"allow": ["WebFetch(domain:*)"]}}`, "it names no domain"},
		{`{"permissions": {"deny": ["Read(~/d/**)"], "additionalDirectories": ["~/d/x"]}}`, "permissions.additionalDirectories=~/d/x shows it"},
		{`{"sandbox": {"excludedCommands": ["docker *"]}}`, "sandbox.excludedCommands=docker * ("},
		{`{"sandbox": {"enabeld": true}}`, "did you mean enabled?"},
		{`{"env": {"A B": "x"}}`, "env.A B (it is no name of a variable"},
		// Codex
		{`sandbox_mode = "danger-full-access"`, "sandbox_mode (it is the host without a sandbox"},
		{`default_permissions = ":danger-full-access"`, "default_permissions (it is the host"},
		{`sandbox_mode = "workspace-writ"`, "it is none of read-only"},
		{"approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"", "approval_policy (it asks a person"},
		{`sandbox_mod = "read-only"` + "\nmodel = \"m\"", "did you mean sandbox_mode?"},
		{"default_permissions = \"a\"\n[permissions.a.filesystem]\n\":workspace_roots\" = { \".\" = \"write\", \"docs\" = \"read\" }", `permissions.a.filesystem.:workspace_roots.docs (`},
		{"default_permissions = \"a\"\n[permissions.a.filesystem]\n\"/data\" = \"write\"\n\"/data/x\" = \"read\"", "makes it writable"},
		{"default_permissions = \"a\"\n[permissions.a.filesystem]\n\":root\" = \"deny\"", "add :minimal"},
		{"default_permissions = \"a\"\n[permissions.a]\nextends = \"b\"\n[permissions.b]\nextends = \"a\"", "extend one another"},
		{"default_permissions = \"projekt\"\n[permissions.project]", "did you mean project?"},
		{"default_permissions = \"a\"\n[permissions.a.network]\nenabled = true\nmode = \"limited\"", "it compares the methods"},
		{"default_permissions = \"a\"\n[permissions.a.network.unix_sockets]\n\"/run/docker.sock\" = \"allow\"", "a socket of the host"},
		{"model = 1\nmodel = 2", "it cannot be read as TOML"},
		{"sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nwritable_roots = [\"build\"]", "write the whole path"},
		// docker
		{`{"defaultAction": "SCMP_ACT_ERRNO", "syscals": []}`, "syscals"},
		{`{"network": {"allowedDomains": ["` + strings.Repeat("a.", policies.MostBytes/2) + `example"]}}`, "and may have"},
		{`{"filesystem": {"allowWrite": [` + manyPaths() + `]}}`, "it names more than 256 directories"},
		// none, or several
		{`{}`, "it has no key by which a system is recognised"},
		{``, "it has no key by which a system is recognised"},
		{`{"network": {}, "permissions": {}}`, "it may be of claude-code or of sandbox-runtime"},
		{`{"network": {}} {}`, "something follows its settings"},
		{`{"network": `, "it cannot be read as an object of JSON"},
	} {
		_, err := importJSON(row.text)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s:\n%v\nwant %s", row.text, err, row.want)
			continue
		}
		if f := agent.FailureOf(err); agent.KindOf(err) != agent.KindInvalid || f.Hint == "" {
			t.Errorf("%s: %+v", row.text, f)
		}
	}
}

func manyPaths() string {
	var paths []string
	for i := range mostVolumes + 1 {
		paths = append(paths, fmt.Sprintf(`"/data/%d"`, i))
	}
	return strings.Join(paths, ", ")
}

func TestSkip(t *testing.T) {
	t.Parallel()
	const text = `{"permissions": {"allow": ["Bash(a:*)", "Bash(b:*)"], "ask": ["Edit"]}, "sandbox": {"enabled": true}}`
	document, err := importJSON(text, "permissions.allow=Bash(a:*)", "permissions.allow=Bash(b:*)", "permissions.ask")
	if err != nil || !strings.Contains(document, "# LEFT OUT by --skip: permissions.allow=Bash(a:*)\n") || !strings.Contains(document, "# LEFT OUT by --skip: permissions.ask\n") {
		t.Errorf("%v\n%s", err, document)
	}
	if _, err := importJSON(text, "permissions.asc"); err == nil || !strings.Contains(err.Error(), "the file has no such setting") || agent.FailureOf(err).Hint != "did you mean permissions.ask?" {
		t.Error(err)
	}
	if _, err := importJSON(text, "permissions.ask", "permissions.allow=Bash(a:*)"); err == nil || !strings.Contains(err.Error(), "1 of the settings") {
		t.Error(err)
	}
}

// TestNarrowMeanings are settings that say the same in other words, or less.
func TestNarrowMeanings(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, want, not string }{
		{`{"network": {"allowedDomains": ["a.example"], "deniedDomains": ["*"]}}`, "mode: none", "a.example\" #"},
		{`{"network": {"allowedDomains": [], "deniedDomains": ["a.example"]}}`, "# network.deniedDomains=a.example: carried: nothing is reached", "deny:"},
		{`{"filesystem": {"denyRead": ["/home"], "allowRead": ["."]}}`, "filesystem.denyRead=/home: carried", "volumes:"},
		{`{"filesystem": {"denyRead": ["~"], "allowRead": ["~/x"]}}`, `"/home/me/x:/home/agent/x:ro"`, "mode: allowlist"},
		{`{"filesystem": {"denyWrite": [".git"]}}`, "filesystem.denyWrite=.git: carried: the workspace is read-only", "- /workspace"},
		{`{"filesystem": {"allowWrite": ["/data", "/data/x"], "allowRead": ["/data/y"]}}`, "filesystem.allowRead=/data/y: carried: filesystem.allowWrite=/data shows it", `"/data/x`},
		{`{"filesystem": {"allowWrite": ["/tmp/build"]}}`, "filesystem.allowWrite=/tmp/build: the run's own", "volumes:"},
		{`{"network": {"allowedDomains": ["localhost:80", "a.example"], "deniedDomains": ["127.0.0.1"]}}`, "network.deniedDomains=127.0.0.1: carried: no port", "host_ports"},
		{"sandbox_mode = \"read-only\"\nfeatures = { network_proxy = true }", "features.network_proxy: without effect", "- /workspace"},
		{"model = \"m\"", "# sandbox_mode: absent: read-only", "- /workspace"},
		{"sandbox_mode = \"read-only\"\n[permissions.a]", "# permissions: without effect", "- /workspace"},
		{"sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nnetwork_access = true\n[features.network_proxy]\nenabled = true\n[features.network_proxy.domains]\n\"a.example\" = \"allow\"", "mode: allowlist", "mode: public"},
		{"default_permissions = \"a\"\n[permissions.a.network]\nenabled = true\n[permissions.a.network.domains]\n\"a.example\" = \"allow\"", "the rules for names hold here", "mode: public"},
		{"default_permissions = \"a\"\n[features]\nnetwork_proxy = true\n[permissions.a.network]\nenabled = true", "no rule allows a name", "mode: public"},
	} {
		document, err := importJSON(row.text)
		if err != nil || !strings.Contains(document, row.want) || strings.Contains(document, row.not) {
			t.Errorf("%s: %v\n%s\nwant %q, not %q", row.text, err, document, row.want, row.not)
		}
	}
}

// TestTextsStayTexts: no value of a file adds a key to a document, or ends a comment.
func TestTextsStayTexts(t *testing.T) {
	t.Parallel()
	document, err := importJSON("{\"permissions\": {\"ask\": [\"x\\nuser: root\"]}, \"env\": {\"A\": \"\\\"\\nuser: root\\u2028: #\"}}", "permissions.ask=x\nuser: root")
	if err != nil {
		t.Fatal(err)
	}
	d, err := policies.Parse([]byte(document))
	if err != nil || d.Has(settings.User) || d.Text(settings.EnvironmentSet) != "A=\"\nuser: root\u2028: #" {
		t.Errorf("%v %+v\n%s", err, d, document)
	}
}

// TestUserSettings: relative paths of the user's own settings are not those of a project.
func TestUserSettings(t *testing.T) {
	t.Parallel()
	file := File{Text: []byte(`{"sandbox": {"filesystem": {"allowWrite": ["./x"]}}}`), Path: "/home/me/.claude/settings.json", Name: "n", Home: "/home/me"}
	if _, err := Import(file); err == nil || !strings.Contains(err.Error(), "below ~/.claude") {
		t.Error(err)
	}
	file.Path = "/work/.claude/settings.json"
	if document, err := Import(file); err != nil || !strings.Contains(string(document), "sandbox.filesystem.allowWrite=./x: as a whole") {
		t.Errorf("%v\n%s", err, document)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	file := example(t, "codex.toml")
	for _, name := range []string{"", "a/b", "standard", "minimal"} {
		file.Name = name
		if _, err := Import(file); err == nil || !strings.Contains(err.Error(), "is no name for a policy") {
			t.Errorf("%q: %v", name, err)
		}
	}
	file.Name, file.System = "x", "gemini"
	if _, err := Import(file); err == nil || !strings.Contains(err.Error(), "there is no system") {
		t.Error(err)
	}
	file.System = ClaudeCode
	if _, err := Import(file); err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Error(err)
	}
}

// FuzzImport: each file is refused in one error with a hint, or becomes a document that can be
// read and does not open what no setting opens.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"runtime.json", "claude.json", "codex.toml", "profile.toml", "filter.json"} {
		f.Add(example(f, name).Text, "")
	}
	f.Add([]byte(`{"env": {"A": "b"}, "permissions": {"ask": ["x"]}}`), "permissions.ask")
	f.Fuzz(func(t *testing.T, text []byte, skip string) {
		file := File{Text: text, Path: "/p", Name: "n", Home: "/home/me"}
		if skip != "" {
			file.Skip = []string{skip}
		}
		made, err := Import(file)
		if err != nil {
			if f := agent.FailureOf(err); agent.KindOf(err) != agent.KindInvalid || f.Hint == "" || strings.ContainsFunc(f.Message, document.Unprintable) {
				t.Errorf("%+v", f)
			}
			return
		}
		d, err := policies.Parse(made)
		if err != nil {
			t.Fatalf("%v\n%s", err, made)
		}
		if d.Has(settings.User) || d.Text(settings.NetworkMode) == agent.NetworkHost || d.Has(settings.Seccomp) && d.Text(settings.Seccomp) != "/p" || d.Has(settings.Grant) || d.Has(settings.Rootfs) {
			t.Errorf("%+v", d)
		}
	})
}
