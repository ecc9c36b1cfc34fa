//go:build root

package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// someCapabilities is a sample of the documented ones.
func someCapabilities(t *testing.T) []string {
	t.Helper()
	var names []string
	for i, name := range capabilitiesGiven(t) {
		if i%testhost.Sample(1, 5, 1) == 0 {
			names = append(names, name)
		}
	}
	return names
}

func withoutScript(names []string) string {
	return `
		granted --rm clove clove run --rm -- echo control; echo control $?
		for WITHOUT in ` + strings.Join(names, " ") + ` filter device rule; do
			granted --rm clove clove run --rm -- echo started; echo "without $WITHOUT $?"
		done
		docker run --rm clove clove run --rm -- echo started; echo "without all $?"`
}

// eachIsNeeded: without one of the documented privileges clove reports that and starts nothing.
func eachIsNeeded(t *testing.T, names []string, out string) {
	said, rest, _ := strings.Cut(out, "control 0\n")
	wantAll(t, said, "control\n")
	told := map[string][]string{
		"filter": {"pivot_root is refused", "seccomp=deploy/docker/seccomp.json"},
		"device": {"open /dev/loop-control", "--device /dev/loop-control"},
		"rule":   {"may open no loop device", "--device-cgroup-rule 'b 7:* rw'"},
		"all":    {"cannot make /sys/fs/cgroup", "--cap-add SYS_ADMIN"},
	}
	for _, name := range names {
		told[name] = []string{"root without CAP_" + name + ":", "--cap-add " + name + " "}
	}
	for _, name := range append(names, "filter", "device", "rule", "all") {
		said, after, refused := strings.Cut(rest, "without "+name+" 125\n")
		if !refused {
			t.Errorf("without %s: no status 125\n%s", name, rest)
			continue
		}
		wantAll(t, said, told[name]...)
		rest = after
	}
	if strings.Contains(out, "started") {
		t.Errorf("an agent started without one of them\n%s", out)
	}
}

// TestDockerCgroupNamespaces: everything works with both cgroup namespaces that docker run
// offers, and with --privileged, which includes the privileges that are otherwise given one by
// one.
func TestDockerCgroupNamespaces(t *testing.T) {
	out := inDocker(t, `
		cat >/srv/inside <<-'EOF'
`+limitsHold+`
		EOF
		inside='-v /srv/inside:/srv/inside:ro clove sh /srv/inside'
		for namespace in host private; do granted --rm --cgroupns $namespace $inside; echo "$namespace $?"; done
		docker run --rm --runtime rights --privileged $inside; echo "privileged $?"
		docker run --rm --runtime rights $inside`)[0]
	for _, row := range []struct{ name, groups string }{{"host", `groups [1-9]`}, {"private", `groups 0`}, {"privileged", `groups \d`}} {
		said, rest, ended := strings.Cut(out, row.name+" 0\n")
		if !ended || !regexp.MustCompile(row.groups).MatchString(said) {
			t.Errorf("%s: no status 0, or not %s\n%s", row.name, row.groups, out)
			continue
		}
		wantAll(t, said, whatHolds...)
		out = rest
	}
	// Control: without --privileged, this runtime grants no privilege.
	if strings.Contains(out, nothingMissing) || !strings.Contains(out, "root without CAP_SYS_ADMIN") {
		t.Errorf("without privileges\n%s", out)
	}
}

// TestDockerUserNamespace: root of a user namespace is refused, with the remedy. After that,
// the next refusal is about a volume, which this engine gives to another user.
func TestDockerUserNamespace(t *testing.T) {
	out := inDocker(t, `
		echo nobody:300000:65536 | tee /etc/subuid >/etc/subgid
		engine remapped --userns-remap nobody:nogroup --bridge none --iptables=false
		docker save clove | docker -H unix:///run/docker/remapped/sock load -q
		export DOCKER_HOST=unix:///run/docker/remapped/sock
		granted --rm --network none clove sh -c 'cat /proc/self/uid_map; clove doctor --json; clove run --rm -- echo started'; echo remapped $?
		granted --rm --network none --userns host clove sh -c 'cat /proc/self/uid_map; clove run --rm -- echo started'; echo host $?`)[0]
	remapped, host, _ := strings.Cut(out, "remapped 125\n")
	wantAll(t, remapped, "300000", "root of a user namespace, which may mount no layer", "--userns=host")
	wantAll(t, host, " 4294967295\n", "/var/lib/clove can be written by others (owner 300000", "host 125\n")
	if strings.Contains(out, "started") {
		t.Errorf("an agent started\n%s", out)
	}
}

// capabilitiesGiven is the list of testdata/docker.sh.
func capabilitiesGiven(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/docker.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "CAPABILITIES='")
	list, _, _ = strings.Cut(list, "'")
	return strings.Fields(list)
}
