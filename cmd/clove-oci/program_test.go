package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/oci/container"
)

// outcome is the result of one command line.
type outcome struct {
	status   int
	out, err string
	logged   string // message of the last line of level error
}

// try runs a command line with a log of its own, as containerd's shim does.
func try(t *testing.T, args ...string) outcome {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log.json")
	var out, errs bytes.Buffer
	p := program{out: &out, err: &errs}
	status := p.execute(append([]string{"clove-oci", "--log", log, "--log-format", "json"}, args...))
	return outcome{status: status, out: out.String(), err: errs.String(), logged: lastError(t, log)}
}

// lastError reads a log as shims do.
func lastError(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	last := ""
	for line := range strings.Lines(string(text)) {
		var entry struct{ Level, Msg, Time string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Time == "" {
			t.Errorf("a line of the log: %q, %v", line, err)
		}
		if entry.Level == "error" {
			last = entry.Msg
		}
	}
	return last
}

// TestAFailureIsToldWhereShimsLook: in the log, on standard error, and by status 1.
func TestAFailureIsToldWhereShimsLook(t *testing.T) {
	root := t.TempDir()
	for name, row := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"state of none":      {[]string{"state", "none"}, 1, "container does not exist"},
		"start of none":      {[]string{"start", "none"}, 1, "container does not exist"},
		"kill of none":       {[]string{"kill", "none", "KILL"}, 1, "container does not exist"},
		"kill --all of none": {[]string{"kill", "--all", "none", "9"}, 1, "container does not exist"},
		"delete of none":     {[]string{"delete", "none"}, 1, "container does not exist"},
		"one called help":    {[]string{"state", "help"}, 1, "container does not exist"},
		"one called h":       {[]string{"kill", "h"}, 1, "container does not exist"},
		"an id that is none": {[]string{"state", "a/b"}, 1, "invalid container ID format"},
		"an empty id":        {[]string{"delete", "--force", ""}, 1, "container id cannot be empty"},
		"no id":              {[]string{"start"}, 1, `clove-oci: "start" requires exactly 1 argument(s)`},
		"two ids":            {[]string{"state", "a", "b"}, 1, `clove-oci: "state" requires exactly 1 argument(s)`},
		"kill without id":    {[]string{"kill"}, 1, `clove-oci: "kill" requires a minimum of 1 argument(s)`},
		"kill with three":    {[]string{"kill", "a", "b", "c"}, 1, `clove-oci: "kill" requires a maximum of 2 argument(s)`},
		"no such flag":       {[]string{"state", "--pid", "a"}, 1, "flag provided but not defined: -pid"},
		"no such format":     {[]string{"list", "--format", "xml"}, 1, "invalid format option"},
		"no such command":    {[]string{"freeze", "a"}, 3, "No help topic for 'freeze'"},
		"no bundle":          {[]string{"create", "--bundle", root + "/none", "a"}, 1, "clove-oci create failed: chdir " + root + "/none: no such file or directory"},
	} {
		got := try(t, append([]string{"--root", root}, row.args...)...)
		if got.status != row.status || got.logged != row.want || got.err != row.want+"\n" {
			t.Errorf("%s: status %d, log %q, standard error %q; want %d, %q", name, got.status, got.logged, got.err, row.status, row.want)
		}
	}
	if entries, _ := os.ReadDir(root); len(entries) != 0 {
		t.Errorf("a refusal left %v", entries)
	}
}

// TestAStatusInsideAnErrorIsNotTheCommands: shims take only status 1 for a failure.
func TestAStatusInsideAnErrorIsNotTheCommands(t *testing.T) {
	inner := exec.Command("/bin/sh", "-c", "exit 3").Run()
	p := program{out: io.Discard, err: io.Discard}
	if status := p.failure(fmt.Errorf("a hook: %w", inner)); status != 1 {
		t.Errorf("status %d", status)
	}
}

func TestDeleteForceForgivesWhatIsGone(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "half"), 0o711); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"half", "none"} {
		if got := try(t, "--root", root, "delete", id, "--force"); got.status != 0 || got.err != "" {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if entries, _ := os.ReadDir(root); len(entries) != 0 {
		t.Errorf("there is still %v", entries)
	}
}

func TestTheRootIsNeverTheWholeHost(t *testing.T) {
	for _, root := range []string{"/", "", "/../", "../../../../../../../../../.."} {
		t.Chdir("/")
		if got := try(t, "--root", root, "list"); got.status != 1 || got.logged != "option --root should not be set to /" {
			t.Errorf("%q: %+v", root, got)
		}
	}
}

func TestALogThatCannotBeOpenedIsSaid(t *testing.T) {
	var out, errs bytes.Buffer
	p := program{out: &out, err: &errs}
	if status := p.execute([]string{"clove-oci", "--log", t.TempDir(), "list"}); status != 1 {
		t.Errorf("status %d", status)
	}
	if _, err := container.LogFormat("yaml"); err == nil || err.Error() != "invalid log-format: yaml" {
		t.Error(err)
	}
}

func TestVersionHasTheLinesThatEnginesLookFor(t *testing.T) {
	var out bytes.Buffer
	p := program{out: &out, err: &out}
	if status := p.execute([]string{"clove-oci", "--version"}); status != 0 {
		t.Error(status)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"clove-oci version " + version, "spec: 1.", "go: go1.", "libseccomp: 2."} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, not %q…", i, lines[i], want)
		}
	}
}

// TestTheFlagsAreThoseOfRunc: shims pass these flags, and with an unknown flag no container
// starts.
func TestTheFlagsAreThoseOfRunc(t *testing.T) {
	app := (&program{}).app()
	for command, want := range map[string]string{
		"":         "root log log-format debug systemd-cgroup records", // the last one is clove's own
		"create":   "bundle b console-socket pidfd-socket pid-file no-pivot no-new-keyring preserve-fds",
		"run":      "bundle b console-socket pidfd-socket pid-file no-pivot no-new-keyring preserve-fds detach d keep no-subreaper",
		"kill":     "all a",
		"delete":   "force f",
		"list":     "format f quiet q",
		"spec":     "bundle b rootless",
		"start":    "",
		"state":    "",
		"features": "",
		"exec":     "console-socket pidfd-socket cwd env e tty t user u additional-gids g process p detach d pid-file process-label apparmor no-new-privs cap c preserve-fds cgroup ignore-paused",
		"ps":       "format f",
		"events":   "interval stats",
		"pause":    "",
		"resume":   "",
		"update": "resources r blkio-weight cpuset-cpus cpuset-mems pids-limit l3-cache-schema mem-bw-schema cpu-period cpu-quota cpu-burst cpu-share " +
			"cpu-rt-period cpu-rt-runtime cpu-idle memory memory-reservation memory-swap kernel-memory kernel-memory-tcp",
	} {
		flags := app.Flags
		if command != "" {
			flags = app.Command(command).Flags
		}
		var names []string
		for _, f := range flags {
			names = append(names, f.Names()...)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q has %s, not %s", command, got, want)
		}
	}
	if app.Command(container.ReexecArgument) != nil {
		t.Error("a command has the name with which libcontainer starts this program")
	}
}

func TestFlagsMayStandBehindTheArguments(t *testing.T) {
	app := (&program{}).app()
	for in, want := range map[string]string{
		"delete one --force":                "delete --force one",
		"kill one KILL --all":               "kill --all one KILL",
		"kill -a one 9":                     "kill -a one 9",
		"kill one -9":                       "kill one -9",
		"create one --bundle b":             "create --bundle b one",
		"create one --bundle=b":             "create --bundle=b one",
		"create one -b b --no-pivot":        "create -b b --no-pivot one",
		"create one --bundle":               "create --bundle one",
		"--root r --debug delete one -f":    "--root r --debug delete -f one",
		"--root=r delete one -f":            "--root=r delete -f one",
		"--systemd-cgroup state one":        "--systemd-cgroup state one",
		"delete -- one --force":             "delete -- one --force",
		"state --force one":                 "state --force one",
		"run one --detach --pid-file p two": "run --detach --pid-file p one two",
		"frobnicate one --force":            "frobnicate one --force",
		"--root":                            "--root",
		"list --format json --quiet":        "list --format json --quiet",
		"--log l --log-format json list -q": "--log l --log-format json list -q",
		"features":                          "features",
		"exec one sh --detach":              "exec one sh --detach",
		"exec --detach one sh -e":           "exec --detach one sh -e",
		"ps one -f x":                       "ps one -f x",
		"checkpoint one --image-path x":     "checkpoint one --image-path x",
		"update one --memory 1":             "update --memory 1 one",
	} {
		if got := strings.Join(arrange(app, append([]string{"clove-oci"}, strings.Fields(in)...)), " "); got != "clove-oci "+want {
			t.Errorf("%s\n got %s\nwant clove-oci %s", in, got, want)
		}
	}
	if got := arrange(app, nil); got != nil {
		t.Error(got)
	}
}
