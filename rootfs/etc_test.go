package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const hostPasswd = `root:$6$hash:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
ann:x:1000:1000:Ann,,,:/home/ann:/bin/bash
agent:x:999:999::/srv:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
broken line
+::::::
`

func TestUsers(t *testing.T) {
	t.Parallel()
	passwd, shadow := users([]byte(hostPasswd), 1000, 1000)
	want := `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
agent:x:1000:1000::/home/agent:/bin/sh
`
	if passwd != want {
		t.Errorf("passwd\n%swant\n%s", passwd, want)
	}
	for line := range strings.Lines(shadow) {
		if fields := strings.Split(line, ":"); len(fields) != 9 || fields[1] != "*" {
			t.Errorf("shadow line %q is not a locked account", line)
		}
	}
	if strings.Count(shadow, "\n") != strings.Count(passwd, "\n") {
		t.Errorf("shadow and passwd differ in length:\n%s", shadow)
	}
}

func TestUsersKnowsTheAgent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		uid, gid uint32
		want     string // a line of passwd
		absent   string
	}{
		{"another id", 2000, 3000, "agent:x:2000:3000::/home/agent:/bin/sh\n", "agent:x:1000"},
		{"root keeps a user to become", 0, 0, "agent:x:1000:1000::/home/agent:/bin/sh\n", "agent:x:0"},
		{"a system user", 1, 1, "daemon:x:1:1:", "agent:"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			passwd, _ := users([]byte(hostPasswd), test.uid, test.gid)
			if !strings.Contains(passwd, test.want) || strings.Contains(passwd, test.absent) {
				t.Errorf("want %q and not %q in\n%s", test.want, test.absent, passwd)
			}
		})
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	group, gshadow := groups([]byte("root:x:0:\nsudo:x:27:ann,bob\nann:x:1000:\n"), 1000)
	if want := "root:x:0:\nsudo:x:27:\nagent:x:1000:\n"; group != want {
		t.Errorf("group\n%swant\n%s", group, want)
	}
	if want := "root:*::\nsudo:*::\nagent:*::\n"; gshadow != want {
		t.Errorf("gshadow\n%swant\n%s", gshadow, want)
	}
}

func TestReadEtcTakesTheHarmlessOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]struct {
		mode os.FileMode
		data string
	}{
		"shells":                      {0o644, "/bin/sh\n"},
		"profile.d/a.sh":              {0o755, "true\n"},
		"profile.d/private.sh":        {0o640, "TOKEN=1\n"},
		"apt/sources.list":            {0o644, "deb http://mirror.example.org/debian bookworm main\n"},
		"apt/sources.list.d/own.list": {0o644, "deb https://ann:secret@mirror/debian bookworm main\n"},
		"apt/auth.conf":               {0o644, "machine mirror login ann password secret\n"},
		"python3.11/sitecustomize.py": {0o644, "pass\n"},
		"shadow":                      {0o644, "root:$6$hash:::::::\n"},
		"shadow+":                     {0o644, "root:$6$hash:::::::\n"},
		"environment":                 {0o644, "TOKEN=1\n"},
		"chromium.d/default-flags":    {0o644, "export CHROMIUM_FLAGS=\n"},
		"chromium.d/apikeys":          {0o644, "export GOOGLE_API_KEY=key\n"},
		"ssh/ssh_host_rsa_key":        {0o644, "key\n"},
		"pam.d/su":                    {0o644, "auth\n"},
		"security/limits.conf":        {0o644, "* hard nofile 1048576\n"},
		"security/pam_env.conf":       {0o644, "# env\n"},
		"ssl/openssl.cnf":             {0o644, "# conf\n"},
		"ssl/private/key.pem":         {0o644, "key\n"},
		"mime.types":                  {0o644, strings.Repeat("x", etcFileBytes+1)},
	}
	for name, f := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.data), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range readEtc(dir) {
		if loaded, ok := e.load(); ok && e.Kind == kindFile {
			got = append(got, strings.TrimPrefix(e.Path, "/etc/"))
			if want := files[strings.TrimPrefix(e.Path, "/etc/")].data; loaded.Data != want {
				t.Errorf("%s holds %q", e.Path, loaded.Data)
			}
		}
	}
	slices.Sort(got)
	want := []string{"apt/sources.list", "chromium.d/default-flags", "pam.d/su", "profile.d/a.sh", "python3.11/sitecustomize.py", "security/pam_env.conf", "shells", "ssl/openssl.cnf"}
	if !slices.Equal(got, want) {
		t.Errorf("copied %q, want %q", got, want)
	}
}

func TestStampFollowsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shells")
	name := func(data string) string {
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		return newTemplate(testConfig(dir), templateBase, readEtc(dir)).Path
	}
	first := name("one\n")
	if again := newTemplate(testConfig(dir), templateBase, readEtc(dir)).Path; again != first {
		t.Errorf("an untouched host asks for two templates: %s, %s", first, again)
	}
	if other := name("one, and another\n"); other == first {
		t.Errorf("a changed file asks for the old template %s", other)
	}
}
