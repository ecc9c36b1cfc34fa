package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/internal/doctest"
	"clove.run/clove/internal/kubetest"
	"clove.run/clove/oci"
	"clove.run/clove/policies/settings"
)

// rendered are command lines whose output is in the golden file.
var rendered = []string{
	"agent.py --image python:3.13-slim",
	"agent.py --image python:3.13-slim --memory 256M --cpus 0.5 --pids-limit 64 --timeout 90 --disk 2G -- one $(two) $$three",
	"agent.py --image img --allow pypi.org --allow *.example.com:443 --deny metadata --name nightly --namespace agents --runtime-class clove-next",
	"agent.py --image img -e MODE=fast -e EMPTY= -e PRICE=$(5)$$ -e API_KEY --env-secret agent-keys --env-file vars.env -l team=red --hostname worker",
	"agent.py --image img --read-only --tmpfs /cache:size=64M --tmpfs /more --shm-size 128M --workdir /cache --user 2000:3000 --stop-timeout 1.5",
	"--image img --user 2000 --network public --restart on-failure:3 --timeout 1h --rm -it --seccomp unconfined -- sh -c id",
	"--image img --restart on-failure --timeout 1h --result /var/lib/clove/records/nightly-{id}.json -d -- true",
	"--image img --workspace project -- python3 pkg/main.py",
	"run.sh --image img --memory-swap 1G",
}

func renderBench(t *testing.T) *bench {
	b := newBench(t)
	b.file("agent.py", "print('hello')\n", 0o644)
	b.file("run.sh", "#!/bin/sh\necho \\\n  hello\n", 0o755)
	b.file("vars.env", "# comment\nCOLOUR=blue\n", 0o644)
	b.file("project/pkg/main.py", "import tool\n", 0o644)
	b.file("project/pkg/tool.py", "x = 1\n", 0o644)
	b.file("project/pkg.tool.py", "another name, the same key\n", 0o644)
	b.file("project/blob", "\xff\x00\x01", 0o644)
	b.file("project/a b.txt", "", 0o644)
	return b
}

// render runs a command line that must be valid, and decodes its output.
func (b *bench) render(line ...string) (text string, made batchv1.Job, files *corev1.ConfigMap) {
	b.t.Helper()
	status, text, stderr := b.clove(append([]string{"render", "kubernetes"}, line...)...)
	if status != 0 {
		b.t.Fatalf("%q: %d, %s", line, status, stderr)
	}
	objects, err := kubetest.Decode([]byte(text))
	if err != nil {
		b.t.Fatalf("%q: %v in\n%s", line, err, text)
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *batchv1.Job:
			made = *object
		case *corev1.ConfigMap:
			files = object
		default:
			b.t.Errorf("%q: there is a %T", line, object)
		}
	}
	return text, made, files
}

func TestRender(t *testing.T) {
	var shown strings.Builder
	for _, line := range rendered {
		text, _, _ := renderBench(t).render(strings.Fields(line)...)
		if again, _, _ := renderBench(t).render(strings.Fields(line)...); again != text {
			t.Errorf("%q: another text in another folder", line)
		}
		shown.WriteString("$ clove render kubernetes " + line + "\n" + text + "\n")
	}
	golden(t, "testdata/render.golden", shown.String())
}

// TestRenderedAnnotationsSayWhatRunWouldHold: package oci reads from the annotations what a
// local run would enforce.
func TestRenderedAnnotationsSayWhatRunWouldHold(t *testing.T) {
	line := []string{"--timeout", "90m", "--pids-limit", "64", "--allow", "API.example.com.", "--allow", "udp://9.9.9.9:53", "--deny", "10.0.0.0/8"}
	b := renderBench(t)
	_, made, _ := b.render(append(line, "--image", "img", "--", "true")...)
	rules, err := oci.Parse(made.Spec.Template.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	spec := b.spec(append(line, "--", "true")...)
	if rules.Limits.WallClock != spec.Limits.WallClock || rules.Limits.Pids != spec.Limits.Pids || rules.Network != spec.Network || len(rules.Egress) != len(spec.Egress.Rules) {
		t.Errorf("the cluster holds %+v, a local run %+v", rules, spec)
	}
	for i, rule := range rules.Egress {
		if local := spec.Egress.Rules[i]; rule.Deny != local.Deny || (local.Source == "--deny") != local.Deny {
			t.Errorf("%+v, not %+v", rule, local)
		}
	}
	container := made.Spec.Template.Spec.Containers[0]
	if memory := container.Resources.Limits.Memory().Value(); memory != spec.Limits.MemoryBytes {
		t.Errorf("memory is %d, and locally %d", memory, spec.Limits.MemoryBytes)
	}
	if deadline := time.Duration(*made.Spec.ActiveDeadlineSeconds) * time.Second; deadline < spec.Limits.WallClock {
		t.Errorf("the Job's deadline, %s, comes before the agent's", deadline)
	}
}

// TestEveryFlagOfRunIsCarriedOrRefused: render must decide on each new flag. A flag that is
// carried over changes the text.
func TestEveryFlagOfRunIsCarriedOrRefused(t *testing.T) {
	carried := map[string]string{
		settings.Memory: "256M", settings.CPUs: "2", settings.Pids: "64", settings.Timeout: "1h", settings.StopTimeout: "9", settings.Disk: "2G", settings.ShmSize: "1M",
		settings.Tmpfs: "/x", settings.Root: "true", settings.Workspace: "project", flagEnv: "A=1", settings.EnvFile: "vars.env",
		flagWorkdir: "/x", flagUser: "2000", flagName: "x", settings.Label: "a=b", settings.Hostname: "x", flagNetwork: "public", settings.Allow: "pypi.org",
		settings.Deny: "pypi.org", settings.Seccomp: "unconfined", flagRestart: "on-failure", flagInteractive: "true", flagTTY: "true", settings.Remove: "true",
		flagResult: "/var/lib/clove/records/x.json", flagEntry: "sh", flagNamespace: "agents",
	}
	// Values that a Job has anyway, or that equal the default.
	same := map[string]string{settings.Detach: "true", flagPolicy: "standard", settings.MemorySwap: "1G"}
	plain, _, _ := renderBench(t).render("--image", "img", "--", "true")
	for _, f := range runFlags() {
		name := f.Names()[0]
		value, isCarried := carried[name]
		sameValue, isSame := same[name]
		b := renderBench(t)
		switch hint := insteadOf(name); {
		case hint != "":
			_, isSwitch := map[string]bool{flagExplainNetwork: true, settings.KeepFiles: true, flagDebug: true, flagClipboard: true, flagInit: true, settings.AgentSocket: true, settings.ModelLog: true}[name]
			flag := "--" + name + "=1"
			if isSwitch {
				flag = "--" + name
			}
			status, text, stderr := b.clove("render", "kubernetes", "--image", "img", flag, "--", "true")
			if status != exitFailed || text != "" || !strings.Contains(stderr, "clove: --"+name+": ") || !strings.Contains(stderr, "hint: "+hint) {
				t.Errorf("%s: %d, %q, %s", name, status, text, stderr)
			}
		case isCarried:
			if text, _, _ := b.render("--image", "img", "--"+name+"="+value, "--", "true"); withoutHash(text) == withoutHash(plain) {
				t.Errorf("--%s changes nothing", name)
			}
		case isSame:
			if text, _, _ := b.render("--image", "img", "--"+name+"="+sameValue, "--", "true"); text != plain {
				t.Errorf("--%s %s changes something:\n%s", name, sameValue, text)
			}
		case name == flagJSON: // TestRenderJSONIsAList
		case name == settings.Python:
			if text, _, _ := b.render("agent.py", "--image", "img", "--python", "/opt/py/bin/python3.13"); !strings.Contains(text, "- /opt/py/bin/python3.13\n") {
				t.Errorf("\n%s", text)
			}
		default:
			t.Errorf("no case says what becomes of --%s in a cluster", name)
		}
	}
}

// withoutHash removes the name's hash, which depends on the whole request.
func withoutHash(text string) string {
	_, name, _ := strings.Cut(text, "app.kubernetes.io/name: ")
	name, _, _ = strings.Cut(name, "\n")
	return strings.ReplaceAll(text, name, "NAME")
}

func TestRenderJSONIsAList(t *testing.T) {
	_, text, _ := renderBench(t).clove("render", "kubernetes", "--json", "--image", "img", "agent.py")
	var list struct {
		Kind  string
		Items []struct{ Kind string }
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || list.Kind != "List" || len(list.Items) != 2 || list.Items[1].Kind != "Job" {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestRenderSaysWhatStaysBehind: `clove run` would show the agent the whole folder.
func TestRenderSaysWhatStaysBehind(t *testing.T) {
	b := renderBench(t)
	_, _, stderr := b.clove("render", "kubernetes", "--image", "img", "agent.py")
	if !strings.Contains(stderr, "only agent.py goes along; 3 more in its folder stay here") {
		t.Errorf("%q", stderr)
	}
	b.file("alone/agent.py", "", 0o644)
	for _, line := range []string{"agent.py --workspace .", "-- true", "alone/agent.py"} {
		if _, _, stderr := b.clove(append([]string{"render", "kubernetes", "--image", "img"}, strings.Fields(line)...)...); stderr != "" {
			t.Errorf("%s: %q", line, stderr)
		}
	}
}

// TestTheExampleJobIsWhatRenderPrints: deploy/kubernetes/job.yaml is the output of the command
// that docs/kubernetes.md shows.
func TestTheExampleJobIsWhatRenderPrints(t *testing.T) {
	root := doctest.Root(t)
	b := newBench(t)
	b.host.Dir = root
	text, _, _ := b.render("--image", "python:3.13-slim", "--memory", "256M", "--cpus", "0.5", "--timeout", "10m", "examples/agent.py")
	golden(t, filepath.Join(root, "deploy/kubernetes/job.yaml"), text)
}

// refusedRenders are mistakes whose messages are in the golden file.
var refusedRenders = []string{
	"",
	"nomad agent.py",
	"kubernetes",
	"kubernetes agent.py",
	"kubernetes missing.py --image img",
	"kubernetes agent.py --image two\twords",
	"kubernetes agent.py --image img --volume .:/data",
	"kubernetes agent.py --image img --network host",
	"kubernetes agent.py --image img --memory-swap 2G",
	"kubernetes agent.py --image img --memory 1K",
	"kubernetes agent.py --image img --timeout 0.0001",
	"kubernetes agent.py --image img --restart always",
	"kubernetes agent.py --image img --seccomp strict",
	"kubernetes agent.py --image img --tmpfs /x:mode=700",
	"kubernetes agent.py --image img --user root",
	"kubernetes agent.py --image img --user 0:1000",
	"kubernetes agent.py --image img --result record.json",
	"kubernetes agent.py --image img --result /var/lib/clove/records/nightly.json --restart on-failure:3",
	"kubernetes agent.py --image img --name Nightly",
	"kubernetes agent.py --image img --hostname a.b",
	"kubernetes agent.py --image img --label a/b/c=d",
	"kubernetes agent.py --image img --namespace -x",
	"kubernetes agent.py --image img --env-secret a_b",
	"kubernetes agent.py --image img -e API_KEY",
	"kubernetes agent.py --image img -e API_KEY=abc",
	"kubernetes agent.py --image img --env-file secrets.env",
	"kubernetes agent.py --image img -e CLOVE_ID=me",
	"kubernetes agent.py --image img --python .venv/bin/python",
	"kubernetes big.py --image img",
	"kubernetes --image img --workspace heavy -- true",
	"kubernetes --image img --workspace linked -- true",
	"kubernetes agent.py --image img --bogus",
	"kubernetes agent.py --image img --agent-socket",
	"kubernetes agent.py --image img --grant tool:fetch",
	"kubernetes agent.py --image img --budget tokens=20k",
	"kubernetes agent.py --image img --at-end pause",
	"kubernetes agent.py --image img --on-warn true",
	"kubernetes agent.py --image img --on-end true",
	"kubernetes agent.py --image img --on-denial end",
}

func TestRenderRefusals(t *testing.T) {
	var shown strings.Builder
	for _, line := range refusedRenders {
		b := renderBench(t)
		b.file("big.py", strings.Repeat("#", 1<<20+1), 0o644)
		b.file("heavy/a", strings.Repeat("a", 1<<19), 0o644)
		b.file("heavy/b", strings.Repeat("b", 1<<19), 0o644)
		b.file("linked/file", "", 0o644)
		b.link("file", "linked/link")
		b.file("secrets.env", "MODE=fast\nDB_PASSWORD=hunter2\n", 0o600)
		status, stdout, stderr := b.clove(append([]string{"render"}, strings.Split(line, " ")...)...)
		if lines := strings.Split(strings.TrimSpace(stderr), "\n"); status != exitFailed || stdout != "" || len(lines) != 2 || !strings.HasPrefix(lines[1], "hint: ") {
			t.Errorf("%q: %d, %q, not one line and a hint:\n%s", line, status, stdout, stderr)
		}
		if strings.Contains(stderr, "hunter2") || strings.Contains(stderr, "abc") {
			t.Errorf("%q: a secret is shown: %s", line, stderr)
		}
		shown.WriteString("$ clove render " + printable(line) + "\n" + strings.ReplaceAll(stderr, b.host.Dir, "$PWD") + "\n")
	}
	golden(t, "testdata/render-refusals.golden", shown.String())
}

// TestNoValueOfTheCallersIsPrinted: a variable without a value refers to the cluster's Secret,
// even if this environment has a value.
func TestNoValueOfTheCallersIsPrinted(t *testing.T) {
	b := renderBench(t)
	b.setenv("API_KEY=hunter2", "PLAIN=hunter2")
	text, made, _ := b.render("--image", "img", "-e", "API_KEY", "-e", "PLAIN", "--env-secret", "keys", "--", "true")
	if strings.Contains(text, "hunter2") {
		t.Errorf("\n%s", text)
	}
	for _, v := range made.Spec.Template.Spec.Containers[0].Env {
		if (v.Name == "API_KEY" || v.Name == "PLAIN") && (v.ValueFrom == nil || v.ValueFrom.SecretKeyRef.Name != "keys" || v.ValueFrom.SecretKeyRef.Key != v.Name) {
			t.Errorf("%+v", v)
		}
	}
	// Control: a local run passes the value on.
	if env := strings.Join(b.spec("-e", "API_KEY", "--", "true").Env, " "); !strings.Contains(env, "hunter2") {
		t.Error("the caller has no such variable")
	}
}

// TestRenderNeedsNoRootAndNoRuntime: it is run on laptops.
func TestRenderNeedsNoRootAndNoRuntime(t *testing.T) {
	b := renderBench(t)
	b.host.UID, b.host.CPUs = 1000, []int{0}
	if _, made, _ := b.render("agent.py", "--image", "img", "--cpus", "64"); b.paths != 0 || made.Spec.Template.Spec.Containers[0].Resources.Limits.Cpu().Value() != 64 {
		t.Errorf("the runtime was opened %d times", b.paths)
	}
	if _, err := os.Stat(filepath.Join(b.host.Dir, agent.WorkspaceDir)); err == nil {
		t.Error("something was made")
	}
}

// TestHelpOfRenderHidesWhatIsRefused: its help has the flags that a Job can hold.
func TestHelpOfRenderHidesWhatIsRefused(t *testing.T) {
	for _, f := range renderFlags() {
		name := f.Names()[0]
		if shown := f.(cli.VisibleFlag).IsVisible(); shown != (insteadOf(name) == "") && name != flagNamespace {
			t.Errorf("--%s: %t", name, shown)
		}
	}
}
