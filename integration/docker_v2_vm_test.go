//go:build vm

package integration

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// stageMachine stages what integration/package/docker.sh does, from this machine's own
// binaries, and with a base that is this machine without its engines: the virtual machine has
// what the Dockerfile installs, and no network for an archive.
const stageMachine = `
	set -e
	mkdir "$1/bin"
	for program in clove cloved clove-init clove-gate clove-loop clove-mcp clove-models clove-swap clove-tool clove-upstream clove-oci; do cp "$CLOVE_BIN_DIR/$program" "$1/bin/"; done
	cp testdata/docker.sh ../deploy/docker/* "$1/"
	cp /usr/share/common-licenses/Apache-2.0 "$1/third-party.gz" # where there is no Go, in the place of the real ones
	cd /
	{
		find usr -xdev -type f -size +7M
		printf '%s\n' usr/lib/modules usr/lib/udev usr/lib/systemd usr/lib/cni usr/lib/podman usr/lib/x86_64-linux-gnu/perl usr/share/perl usr/share/zoneinfo etc/apt/sources.list etc/apt/sources.list.d
	} >"$1/engines"
	tar --one-file-system --exclude-from="$1/engines" -cf "$1/base.tar" bin sbin lib lib64 etc usr var/lib/apt var/lib/dpkg var/cache/apt`

// TestDockerOnV2: the image on a host with cgroup v2, with the privileges of docs/docker.md,
// with --privileged, and without some of them.
func TestDockerOnV2(t *testing.T) {
	newHost(t)
	for _, name := range []string{"dockerd", "docker", "tini"} {
		testhost.Tool(t, name)
	}
	if testhost.Cgroup() != testhost.CgroupV2 {
		t.Fatal("this machine has not cgroup v2 alone")
	}
	stage := t.TempDir()
	command := exec.Command("bash", "-c", stageMachine, "stage", stage)
	command.Env = append(os.Environ(), "LC_ALL=C")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out := inEngine(t, stage, `
		cat >/srv/inside <<-'EOF'
`+limitsHold+`
		EOF
		inside='-v /srv/inside:/srv/inside:ro clove sh /srv/inside'
		granted --rm $inside; echo "granted $?"
		docker run --rm --runtime rights --privileged $inside; echo "privileged $?"
		for WITHOUT in SYS_ADMIN filter device rule; do granted --rm clove clove run --rm -- echo started; echo "without $WITHOUT $?"; done`)
	rest := out
	for _, name := range []string{"granted", "privileged"} {
		said, after, ended := strings.Cut(rest, name+" 0\n")
		if !ended {
			t.Fatalf("%s: no status 0\n%s", name, out)
		}
		wantAll(t, said, whatHolds...)
		rest = after
	}
	wantAll(t, rest, "without SYS_ADMIN 125\n", "without filter 125\n", "without device 125\n", "without rule 125\n")
	if strings.Contains(out, "started") {
		t.Errorf("an agent started without one of them\n%s", out)
	}
}
