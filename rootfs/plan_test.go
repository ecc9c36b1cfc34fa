package rootfs

import (
	"strings"
	"testing"
)

func testFacts() hostInfo {
	return hostInfo{
		Links:  map[string]string{"/bin": "usr/bin", "/lib": "usr/lib"},
		Base:   []string{"/opt", "/usr", "/usr/local"},
		Etc:    []entry{{Path: "/etc/shells", Kind: kindFile, Mode: 0o644, From: "/etc/shells", Stamp: "8@1"}},
		Passwd: []byte("root:x:0:0:root:/root:/bin/bash\n"),
		Group:  []byte("root:x:0:\n"),
	}
}

// fixedConfig has paths that do not depend on a test directory.
func fixedConfig() Config {
	cfg := testConfig("/c")
	cfg.StateDir, cfg.RunDir = "/var/lib/clove", "/run/clove/0123456789abcdef"
	return cfg
}

func checkPlan(t *testing.T, cfg Config, f hostInfo, want string) {
	t.Helper()
	got := planFor(cfg, f).String()
	if got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%swant%s", got, want)
	}
}

func TestPlanOverTheBase(t *testing.T) {
	t.Parallel()
	checkPlan(t, fixedConfig(), testFacts(), `
stage
layer /var/lib/clove/layers/0123456789abcdef.img from base-67108864-b7c2a079e1c883f0.img with 36 names
skeleton
  file /etc/hostname 0644 0:0 4 bytes
  file /etc/hosts 0644 0:0 75 bytes
  file /etc/resolv.conf 0644 0:0 35 bytes
  file /etc/group 0644 0:0 24 bytes
  file /etc/gshadow 0640 0:0 19 bytes
  file /etc/machine-id 0444 0:0 0 bytes
  file /etc/passwd 0644 0:0 71 bytes
  file /etc/shadow 0640 0:0 45 bytes
  dir /home/agent 0755 1000:1000
  dir /workspace 0755 1000:1000
overlay / on skel, ids 0:1879048192:65536, upper 0
overlay /opt on /opt, ids 0:1879048192:65536, upper 1, or as it is
overlay /usr on /usr, ids 0:1879048192:65536, upper 2, or as it is
overlay /usr/local on /usr/local, ids 0:1879048192:65536, upper 3, or as it is
sys
table
`)
}

func TestPlanOverADirectory(t *testing.T) {
	t.Parallel()
	cfg := fixedConfig()
	cfg.Rootfs, cfg.AgentUID, cfg.AgentGID, cfg.Hostname = "/srv/root", 0, 0, ""
	f := testFacts()
	f.Rootfs = source{Path: "/srv/root", Dir: true}
	checkPlan(t, cfg, f, `
stage
layer /var/lib/clove/layers/0123456789abcdef.img from rootfs-67108864-94a380231efc3881.img with 6 names
skeleton
  file /etc/hostname 0644 0:0 17 bytes
  file /etc/hosts 0644 0:0 88 bytes
  file /etc/resolv.conf 0644 0:0 35 bytes
  dir /workspace 0755 0:0
overlay / on skel on /srv/root, ids 0:1879048192:65536, upper 0
make directory /var/tmp 1777 0:0
make directory /home/agent 0755 1000:1000
sys
table
`)
}

// mountLines returns the lines of a plan between the base and /sys.
func mountLines(cfg Config, f hostInfo) string {
	_, rest, _ := strings.Cut(planFor(cfg, f).String(), "upper 3, or as it is\n")
	mounts, _, _ := strings.Cut(rest, "sys\n")
	return mounts
}

func TestPlanOrdersMountsByTarget(t *testing.T) {
	t.Parallel()
	cfg, f := fixedConfig(), testFacts()
	f.Workspace = source{Path: "/home/ann/job", Dir: true, Owner: 1000, Group: 1000}
	f.Prefixes = []source{{Path: "/root/.pyenv/versions/3.11.7", Dir: true}}
	cfg.Binds = []Bind{{Target: "/workspace/data/deep"}, {Target: "/workspace/data", ReadOnly: true}, {Target: "/conf"}}
	f.Binds = []source{{Path: "/a", Dir: true, Owner: 1000, Group: 1000}, {Path: "/b", Dir: true, Owner: 1000, Group: 1000}, {Path: "/c", Owner: 1000, Group: 1000}}
	cfg.Tmpfs = []Tmpfs{{Target: "/tmp"}, {Target: "/cache", SizeBytes: 4096, Mode: 0o700, NoSwap: true}}
	want := `tmpfs /cache 0700 of 4096 bytes, without swap
bind /c at /conf, ids 0:1879048192:65536, recursive
bind /root/.pyenv/versions/3.11.7 at /root/.pyenv/versions/3.11.7, ids 0:1879049192:1,1:1879048193:999,1000:1879048192:1,1001:1879049193:64535, read-only
tmpfs /tmp 1777 of 134217728 bytes
overlay /workspace on /home/ann/job, ids 0:1879048192:65536, upper 4, or a copy
bind /b at /workspace/data, ids 0:1879048192:65536, recursive, read-only
bind /a at /workspace/data/deep, ids 0:1879048192:65536, recursive
`
	if got := mountLines(cfg, f); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestPlanReadOnly(t *testing.T) {
	t.Parallel()
	cfg, f := fixedConfig(), testFacts()
	cfg.ReadOnly = true
	cfg.Tmpfs = []Tmpfs{{Target: "/tmp"}}
	_, rest, _ := strings.Cut(planFor(cfg, f).String(), "upper 3, or as it is\n")
	want := `scratch /home/agent, upper 4
tmpfs /tmp 1777 of 134217728 bytes
scratch /var/tmp, upper 5
scratch /workspace, upper 6
sys
seal /usr/local
seal /usr
seal /opt
seal /
table
`
	if rest != want {
		t.Errorf("got\n%swant\n%s", rest, want)
	}
}

func TestPlanSealsNoRequestedMount(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/opt": "seal /usr/local\nseal /usr\nseal /\ntable\n", "/usr": "seal /opt\nseal /\ntable\n", "/opt/x": "seal /usr/local\nseal /usr\nseal /opt\nseal /\ntable\n",
	} {
		cfg := fixedConfig()
		cfg.ReadOnly, cfg.Tmpfs = true, []Tmpfs{{Target: target}}
		if _, got, _ := strings.Cut(planFor(cfg, testFacts()).String(), "sys\n"); got != want {
			t.Errorf("%s: got\n%swant\n%s", target, got, want)
		}
	}
}

// A place that is not in the list has no scratch directory, so it is a part of the sealed
// root; the workspace's overlay is sealed. Mounts that were requested stay as they are.
func TestPlanWritablePlaces(t *testing.T) {
	t.Parallel()
	const sealed = "sys\nseal /usr/local\nseal /usr\nseal /opt\nseal /\ntable\n"
	for name, row := range map[string]struct {
		writable  []string
		workspace bool
		tmpfs     []Tmpfs
		want      string
	}{
		"tmp":               {[]string{"/tmp"}, false, nil, "scratch /tmp, upper 4, by no link\n" + sealed},
		"the home":          {[]string{"/home/agent"}, false, nil, "scratch /home/agent, upper 4, by no link\n" + sealed},
		"shared memory":     {[]string{"/dev/shm"}, false, nil, sealed},
		"an own workspace":  {[]string{"/workspace", "/var/tmp"}, false, nil, "scratch /var/tmp, upper 4, by no link\nscratch /workspace, upper 5, by no link\n" + sealed},
		"a workspace":       {[]string{"/workspace"}, true, nil, "overlay /workspace on /job, ids 0:1879048192:65536, upper 4, or a copy\n" + sealed},
		"a tmpfs beside it": {[]string{"/var/tmp"}, false, []Tmpfs{{Target: "/tmp", SizeBytes: 4096}}, "tmpfs /tmp 1777 of 4096 bytes\nscratch /var/tmp, upper 4, by no link\n" + sealed},
		"a tmpfs instead":   {[]string{"/tmp"}, true, []Tmpfs{{Target: "/workspace", SizeBytes: 4096}}, "scratch /tmp, upper 4, by no link\ntmpfs /workspace 1777 of 4096 bytes\n" + sealed},
		"a closed workspace": {[]string{"/tmp"}, true, nil, "scratch /tmp, upper 4, by no link\noverlay /workspace on /job, ids 0:1879048192:65536, upper 5, or a copy\n" +
			strings.Replace(sealed, "sys\n", "sys\nseal /workspace\n", 1)},
	} {
		cfg, f := fixedConfig(), testFacts()
		cfg.ReadOnly, cfg.Writable, cfg.Tmpfs = true, row.writable, row.tmpfs
		if row.workspace {
			f.Workspace = source{Path: "/job", Dir: true, Owner: 1000, Group: 1000}
		}
		if _, got, _ := strings.Cut(planFor(cfg, f).String(), "upper 3, or as it is\n"); got != row.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, row.want)
		}
	}
}

func TestExplicitMountReplacesTheWorkspace(t *testing.T) {
	t.Parallel()
	cfg, f := fixedConfig(), testFacts()
	f.Workspace = source{Path: "/home/ann/job", Dir: true}
	cfg.Tmpfs = []Tmpfs{{Target: "/workspace"}}
	if got, want := mountLines(cfg, f), "tmpfs /workspace 1777 of 134217728 bytes\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestAPrefixBelowRootOpensIt(t *testing.T) {
	t.Parallel()
	cfg, f := fixedConfig(), testFacts()
	const opened = "dir /root 0755"
	if plan := planFor(cfg, f).String(); strings.Contains(plan, opened) {
		t.Errorf("control: /root is open without need:\n%s", plan)
	}
	f.Prefixes = []source{{Path: "/root/.pyenv", Dir: true}}
	if plan := planFor(cfg, f).String(); !strings.Contains(plan, opened) {
		t.Errorf("/root stays closed:\n%s", plan)
	}
}

func TestSkeletonText(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, e := range testFacts().skeleton() {
		got.WriteString(e.String() + "\n")
	}
	want := `dir / 0755 0:0
link /bin -> usr/bin
dir /dev 0755 0:0
dir /etc 0755 0:0
link /etc/mtab -> ../proc/self/mounts
dir /etc/security 0755 0:0
file /etc/security/limits.conf 0644 0:0 38 bytes
file /etc/shells 0644 0:0 from /etc/shells 8@1
dir /home 0755 0:0
link /lib -> usr/lib
dir /opt 0755 0:0
dir /proc 0755 0:0
dir /root 0700 0:0
dir /run 0755 0:0
dir /run/lock 1777 0:0
dir /sys 0755 0:0
dir /tmp 1777 0:0
dir /usr 0755 0:0
dir /usr/local 0755 0:0
dir /var 0755 0:0
dir /var/cache 0755 0:0
dir /var/cache/apt 0755 0:0
dir /var/cache/apt/archives 0755 0:0
dir /var/cache/apt/archives/partial 0755 0:0
dir /var/cache/debconf 0755 0:0
dir /var/lib 0755 0:0
dir /var/lib/apt 0755 0:0
dir /var/lib/apt/lists 0755 0:0
dir /var/lib/apt/lists/partial 0755 0:0
dir /var/lib/misc 0755 0:0
link /var/lock -> /run/lock
dir /var/log 0755 0:0
dir /var/log/apt 0755 0:0
link /var/run -> /run
dir /var/spool 0755 0:0
dir /var/tmp 1777 0:0
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
