package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/policies"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// others are samples of flags that need another flag beside them, which is named with them.
var others = map[string][]string{
	settings.DNS: {"9.9.9.9", settings.NetworkMode, "public"}, settings.Execute: {"/usr", settings.Root, settings.RootReadOnly}, settings.Detach: {""},
	flagRestart: {"on-failure:3", settings.Detach, "true"}, flagAfter: {"db", settings.Detach, "true"}, settings.Priority: {"7", settings.Detach, "true"},
	settings.Ready: {"true", settings.Detach, "true"}, settings.ReadyIn: {"5s", settings.Detach, "true"},
	settings.Schedule: {"@hourly", settings.Detach, "true"}, settings.KeepFiles: {"", settings.Schedule, "@hourly", settings.Detach, "true"},
	settings.ModelLog: {"", settings.Model, "echo"}, settings.ModelSetup: {"codex", settings.Model, "echo"}, flagInteractive: {"", settings.Detach, "true"},
	settings.Secret:   {"TOKEN:env=TOKEN", settings.NetworkMode, "public"},
	settings.AskHold:  {"5m", settings.Asks, "net"},
	settings.OnAsk:    {"true", settings.Asks, "net", settings.OnAskKey, "/root/key"},
	settings.OnAskKey: {"/root/key", settings.Asks, "net", settings.OnAsk, "true"},
	settings.Idle:     {"90s", settings.AgentSocket, "true", settings.Detach, "true"}, settings.SpawnDepth: {"2", settings.Grant, "spawn:worker"}, settings.Orphans: {agent.OrphansKeep, settings.Grant, "spawn:worker"},
}

// withoutKey are flags of run whose key is another: the agent's name, the variables, and the kept home, which
// has the agent's name so that no manifest names another's.
var withoutKey = []string{flagName, flagEnv, settings.KeptHome}

// Each flag of run that is part of a spec has a key, and both give the same spec.
func TestKeysOfManifestsAreFlags(t *testing.T) {
	for i := range settings.All() {
		s := &settings.All()[i]
		switch {
		case s.Flag == "":
			continue
		case s.ManifestKey() == "" && slices.Contains(withoutKey, s.Flag):
			continue
		case s.ManifestKey() == "":
			t.Errorf("--%s has no key in manifests", s.Flag)
			continue
		}
		sample, found := others[s.Flag]
		if !found {
			sample = []string{samples[s.Flag]}
		}
		values := settings.Values{s.Flag: {sample[0]}}
		if s.On != "" {
			values.Set(s.Flag, s.On)
		}
		if s.Flag == settings.Workspace {
			values.Set(s.Flag, ".")
		}
		for i := 1; i < len(sample); i += 2 {
			values.Set(sample[i], sample[i+1])
		}
		compareSpecs(t, flagsOf(values), values)
	}
	compareSpecs(t, []string{"--env", "A=1"}, settings.Values{settings.EnvironmentSet: {"A=1"}})
}

func flagsOf(v settings.Values) (flags []string) {
	for name, texts := range v {
		if settings.Find(name).On != "" {
			flags = append(flags, "--"+name)
			continue
		}
		for _, text := range texts {
			flags = append(flags, "--"+name, text)
		}
	}
	return flags
}

// compareSpecs builds a spec of flags, and one of a manifest with these values.
func compareSpecs(t *testing.T, flags []string, values settings.Values) {
	t.Helper()
	b := manifestBench(t)
	f := b.cloved()
	f.answer(methods.RunStart.Name, api.RunResult{})
	f.answer(methods.SecretList.Name, keptSecret)
	build := func(args ...string) agent.Spec {
		if !values.Has(settings.Detach) {
			return b.spec(args...)
		}
		if status, _, stderr := b.clove(append([]string{runName}, args...)...); status != 0 {
			t.Fatalf("%q: %d, %s", args, status, stderr)
		}
		var asked api.StartParams
		f.heard(methods.RunStart.Name, &asked)
		return asked.Spec
	}
	m := policies.Manifest{ManifestHead: policies.ManifestHead{Version: 1, Name: "agent", Task: policies.Task{Script: "work/agent.py", Args: []string{"one"}}}, Values: values}
	if values.Has(settings.Keep) {
		m.Home, flags = policies.HomeKept, append(flags, "--"+settings.KeptHome, m.Name)
	}
	typed := build(append(flags, "work/agent.py", "--", "one")...)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	b.file("agent.yaml", string(text), 0o644)
	written := build("agent.yaml")
	if written.Manifest.Name != "agent" || len(written.Manifest.SHA256) != 64 {
		t.Errorf("%+v", written.Manifest)
	}
	written.Manifest = agent.Manifest{}
	a, _ := json.Marshal(typed)
	c, _ := json.Marshal(written)
	if same := func(text []byte, id agent.ID) string {
		return strings.NewReplacer(string(id), "ID", string(id)[:8], "ID8").Replace(string(text))
	}; same(a, typed.ID) != same(c, written.ID) {
		t.Errorf("%q\n%s\n%s\n%s", flags, a, text, c)
	}
}

func manifestBench(t *testing.T) *bench {
	b := interpreterBench(t)
	b.cloved() // without it, some flags are refused in the foreground
	b.file("folder/x", "", 0o644)
	b.file("vars", "B=2\n", 0o644)
	b.file("work/agent.py", "", 0o644)
	b.host.Environ = append(b.host.Environ, "HOME="+b.host.Dir)
	return b
}

// What is typed comes over the manifest: a value in place of the manifest's, a list behind it.
func TestFlagsOverAManifest(t *testing.T) {
	b := manifestBench(t)
	b.file("agent.yaml", "version: 1\nname: web\nscript: work/agent.py\nargs: [one]\nlimits: {memory: 64M, pids: 40}\nlabels: [a=1, b=1]\nenvironment: {set: {A: file, B: file}}\nnetwork: {allow: [a.example.com]}\n", 0o644)
	spec := b.spec("--memory", "128M", "-l", "b=2", "-e", "A=typed", "--allow", "b.example.com", "agent.yaml", "--", "two")
	if spec.Limits.MemoryBytes != 128<<20 || spec.Limits.Pids != 40 || !reflect.DeepEqual(spec.Labels, map[string]string{"a": "1", "b": "2"}) ||
		!slices.Contains(spec.Env, "A=typed") || !slices.Contains(spec.Env, "B=file") || len(spec.Egress.Rules) != 2 ||
		!slices.Equal(spec.Command[1:], []string{"/workspace/agent.py", "one", "two"}) || !strings.HasPrefix(spec.Name, "web-") {
		t.Errorf("%+v", spec)
	}
}

func TestManifestCommands(t *testing.T) {
	b := manifestBench(t)
	b.file("agent.yaml", "version: 1\nname: web\ncommand: [\"true\"]\nenvironment: {set: {KEY: hidden}}\nfiles: {volumes: [\"./folder:/data\"]}\n", 0o644)
	for name, text := range map[string]string{"key": "limits: {memroy: 1G}", "value": "limits: {memory: 12Q}", "type": "labels: 3", "later": "home: ../other", "anchor": "labels: &a [x]",
		"detached": "restart: always", "twice": "user: agent\nuser: root", "script": "script: agent.py", "install": "install: npm:x@1.0.0", "login": "login: [x]", "second": "---\nversion: 1"} {
		b.file(name+".yaml", "version: 1\nname: web\ncommand: [\"true\"]\n"+text+"\n", 0o644)
	}
	for name, text := range map[string]string{"path": "program: ../tool", "range": "program: x\ninstall: npm:x@^1", "url": "program: x\ninstall: npm:https://x@1.0.0",
		"flag": "program: x\ninstall: npm:--x@1.0.0", "stranger": "command: [\"true\"]\nhome: kept", "absent": "program: absent\nworkspace: folder"} {
		b.file(name+".yaml", "version: 1\nname: "+map[bool]string{true: "claude-code", false: "web"}[name == "stranger"]+"\n"+text+"\n", 0o644)
	}
	for _, row := range []struct {
		words          string
		status         int
		stdout, stderr string
	}{
		{"check agent.yaml", 0, "agent.yaml: sound", ""},
		{"check key.yaml", exitFailed, "", `key.yaml: line 4, column 10: limits: there is no key "memroy"` + "\nhint: did you mean memory?"},
		{"check value.yaml", exitFailed, "", `value.yaml: line 4, column 18: limits.memory: "12Q" is not a size`},
		{"check type.yaml", exitFailed, "", "type.yaml: line 4, column 9: labels: the number stands where a list belongs"},
		{"check anchor.yaml", exitFailed, "", "anchors are not read here"},
		{"check detached.yaml", 0, "detached.yaml: sound, for clove run -d, as a child and in a team\n", ""},
		{"check twice.yaml", exitFailed, "", "the key \"user\" stands in line 4 already"},
		{"check script.yaml", exitFailed, "", "it has two of script, command, program and model"},
		{"check install.yaml", exitFailed, "", "install and login belong to a program"},
		{"check login.yaml", exitFailed, "", "install and login belong to a program"},
		{"check path.yaml", exitFailed, "", `"../tool" is no name of a program` + "\nhint: write the name alone; script: PATH names a file"},
		{"check range.yaml", exitFailed, "", `"npm:x@^1" names no version of a package`},
		{"check url.yaml", exitFailed, "", `"npm:https://x@1.0.0" names no version of a package`},
		{"check flag.yaml", exitFailed, "", `"npm:--x@1.0.0" names no version of a package`},
		{"check stranger.yaml", exitFailed, "", "claude-code is an agent of this host, whose kept home this file would have"},
		{"check absent.yaml", exitFailed, "", "absent.yaml: line 3, column 10: program: absent is neither in PATH nor in your home"},
		{"check second.yaml", exitFailed, "", "there is a second document"},
		{"check gone.yaml agent.yaml", exitFailed, "agent.yaml: sound", `cannot read the manifest "gone.yaml"`},
		{"check work/agent.py", exitFailed, "", "has not the ending of a manifest"},
		{"show agent.yaml", 0, "environment.set      KEY\n", ""},
		{"show --json agent.yaml", 0, "\"environment.set\": [\n      \"KEY\"\n", ""},
		{"schema", 0, `"schedule"`, ""},
		{"digest agent.yaml", 0, "  agent.yaml", ""},
	} {
		status, stdout, stderr := b.clove(append([]string{"manifest"}, strings.Fields(row.words)...)...)
		if status != row.status || !strings.Contains(stdout, row.stdout) || !strings.Contains(stderr, row.stderr) {
			t.Errorf("%s: %d, %q, %q", row.words, status, stdout, stderr)
		}
	}
	for line, want := range map[string]string{
		"ask agent.yaml x":        "agent.yaml names no model",
		"chat agent.yaml":         "agent.yaml names no model",
		"ask --model echo x.yaml": "",
	} {
		if status, _, stderr := b.clove(strings.Fields(line)...); !strings.Contains(stderr, want) || want == "" && strings.Contains(stderr, "manifest") || want != "" && status == 0 {
			t.Errorf("%s: %d, %q", line, status, stderr)
		}
	}
	b.file("sub/out.yaml", "version: 1\nname: out\nscript: ../work/agent.py\n", 0o644)
	b.file("work/in.yaml", "version: 1\nname: in\nscript: agent.py\n", 0o644)
	if err := os.Symlink("../work/agent.py", filepath.Join(b.host.Dir, "sub/link.py")); err != nil {
		t.Fatal(err)
	}
	b.file("sub/link.yaml", "version: 1\nname: link\nscript: link.py\n", 0o644)
	for file, says := range map[string]bool{"sub/out.yaml": true, "sub/link.yaml": true, "work/in.yaml": false} {
		if _, _, stderr := b.clove("run", file); strings.Contains(stderr, "works on "+filepath.Join(b.host.Dir, "work")) != says {
			t.Errorf("%s: %q", file, stderr)
		}
	}
	_, _, stderr := b.clove("run", "agent.yaml")
	if !strings.Contains(stderr, "agent.yaml shows ./folder:/data") {
		t.Errorf("a run does not say what it takes of the host: %q", stderr)
	}
}

// The digest is of what the manifest says: it changes with each value, file and policy that
// counts, and neither with the folder nor with the value of a variable.
func TestDigestOfAManifest(t *testing.T) {
	digest := func(dir, manifest, script, policy string) string {
		t.Helper()
		b := manifestBench(t)
		for name, text := range map[string]string{"agent.yaml": "version: 1\nname: web\nextends: ./own.yaml\nscript: a.py\n" + manifest, "a.py": script, "own.yaml": "version: 1\nname: own\n" + policy} {
			b.file(filepath.Join(dir, name), text, 0o644)
		}
		m, err := resolve.LoadManifest(filepath.Join(dir, "agent.yaml"), b.host)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := m.Digest(b.host)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	plain := digest("a", "environment: {set: {A: x1}}\n", "1", "limits: {pids: 50}\n")
	for _, same := range []string{
		digest("b/c", "environment: {set: {A: x1}}\n", "1", "limits: {pids: 50}\n"),
		digest("a", "environment: {set: {A: x2}}\ndescription: another\n", "1", "# a comment\nlimits: {pids: 50}\n"),
	} {
		if same != plain {
			t.Errorf("%s became %s", plain, same)
		}
	}
	filter := func(path, text string) string {
		t.Helper()
		b := manifestBench(t)
		b.file("web.yaml", "version: 1\nname: web\nextends: ./own.yaml\ncommand: [\"true\"]\n", 0o644)
		b.file("own.yaml", "version: 1\nname: own\nseccomp: ./"+path+"\n", 0o644)
		b.file(path, text, 0o644)
		_, stdout, stderr := b.clove("manifest", "digest", "web.yaml")
		if stderr != "" {
			t.Fatal(stderr)
		}
		return stdout
	}
	if filter("a.json", "{}") != filter("b.json", "{}") || filter("a.json", "{}") == filter("a.json", "{ }") {
		t.Error("the filter of a policy counts by another thing than its content")
	}
	for _, other := range []string{
		digest("a", "environment: {set: {B: x1}}\n", "1", "limits: {pids: 50}\n"),
		digest("a", "environment: {set: {A: x1}}\n", "2", "limits: {pids: 50}\n"),
		digest("a", "environment: {set: {A: x1}}\n", "1", "limits: {pids: 51}\n"),
		digest("a", "environment: {set: {A: x1}}\nargs: [x]\n", "1", "limits: {pids: 50}\n"),
	} {
		if other == plain {
			t.Errorf("another manifest has the digest %s", plain)
		}
	}
}

// The digest does not change with a version of clove: records would name another agent.
func TestDigestIsGolden(t *testing.T) {
	b := manifestBench(t)
	b.file("agent.yaml", "version: 1\nname: web\ncommand: [\"true\"]\nlimits: {memory: 64M}\n", 0o644)
	_, stdout, _ := b.clove("manifest", "digest", "agent.yaml")
	const want = "e1423aefec549c83e87d1919070cf948b59a6de7a2234411147c562d08cd9a4b"
	if sum, _, _ := strings.Cut(stdout, " "); sum != want {
		t.Errorf("the digest is %s", sum)
	}
	if err := os.Remove(filepath.Join(b.host.Dir, "agent.yaml")); err != nil {
		t.Fatal(err)
	}
}
