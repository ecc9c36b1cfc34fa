//go:build root

package integration

import (
	"archive/tar"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// keptHomes is what clove home ls shows the caller.
func keptHomes(t *testing.T, h *host) (all []agent.KeptHome) {
	t.Helper()
	r := h.clove("home", "ls", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &all); r.code != 0 || err != nil {
		t.Fatalf("%d, %s, %v", r.code, r.stderr, err)
	}
	return all
}

// A kept home is there in the user's next run in the folder, also in one that is detached, and in nobody
// else's. Two at once: the second has a copy, says so, and its changes are lost. The controls are a run
// without the flag, another name, another folder and another user.
func TestAHomeThatStays(t *testing.T) {
	d := newClovedFor(t, groupName)
	folder, other := userDir(t, nil), userDir(t, nil)
	const look = "cat /home/agent/token || echo none"
	for name, h := range map[string]*host{"root": d.host, "member": d.member()} {
		in := func(dir string, args ...string) result {
			t.Helper()
			r := h.clove(append([]string{"run", "--rm", "--workspace", dir}, args...)...)
			if r.code != 0 {
				t.Fatalf("%s: %d, %s", name, r.code, r.stderr)
			}
			return r
		}
		if r := in(folder, "--home", "mine", "--", "sh", "-c", look+"; echo "+name+" >/home/agent/token"); r.stdout != "none\n" {
			t.Errorf("%s: the first life finds %q", name, r.stdout)
		}
		if r := in(folder, "--home", "mine", "--read-only", "--", "sh", "-c", look); r.stdout != name+"\n" {
			t.Errorf("%s: the next life finds %q", name, r.stdout)
		}
		for what, r := range map[string]result{
			"no flag":        in(folder, "--", "sh", "-c", look),
			"another name":   in(folder, "--home", "other", "--", "sh", "-c", look),
			"another folder": in(other, "--home", "mine", "--", "sh", "-c", look),
		} {
			if r.stdout != "none\n" {
				t.Errorf("%s: control: %s finds %q", name, what, r.stdout)
			}
		}
		first := h.clove("run", "-d", "--name", "first", "--workspace", folder, "--home", "mine", "--", "sleep", "600")
		if first.code != 0 {
			t.Fatalf("%s: %s", name, first.stderr)
		}
		if r := in(folder, "--home", "mine", "--", "sh", "-c", look+"; echo copy >/home/agent/token"); r.stdout != name+"\n" || strings.Count(r.stderr, "has a copy, which is not kept") != 1 {
			t.Errorf("%s: two at once: %q, %s", name, r.stdout, r.stderr)
		}
		if r := h.clove("home", "rm", "other"); r.code != 0 {
			t.Errorf("%s: %s", name, r.stderr)
		}
		for _, home := range keptHomes(t, h) {
			if inUse := home.InUse; inUse != (home.Folder == folder && home.UID == uidOf(h)) || name == "member" && home.UID != memberUID {
				t.Errorf("%s: listed: %+v", name, home)
			}
			if home.InUse {
				if r := h.clove("home", "rm", home.ID); r.code == 0 || !strings.Contains(r.stderr, "a run has the kept home") {
					t.Errorf("%s: a home in use was removed: %s", name, r.stderr)
				}
			}
		}
		if r := h.clove("rm", "--force", "first"); r.code != 0 {
			t.Fatalf("%s: %s", name, r.stderr)
		}
		if r := in(folder, "--home", "mine", "--", "sh", "-c", look); r.stdout != name+"\n" || strings.Contains(r.stderr, "copy") {
			t.Errorf("%s: control: afterwards it is %q, %s", name, r.stdout, r.stderr)
		}
	}
	roots := keptHomes(t, d.host)
	for _, home := range roots {
		if r := d.member().clove("home", "rm", home.ID); (r.code == 0) != (home.UID == memberUID) {
			t.Errorf("a member removes the home of %d: %d, %s", home.UID, r.code, r.stderr)
		}
	}
	for _, home := range keptHomes(t, d.host) {
		if r := d.clove("home", "rm", home.ID); r.code != 0 || home.UID != 0 {
			t.Errorf("root: %+v: %s", home, r.stderr)
		}
	}
	if left := keptHomes(t, d.host); len(left) != 0 || len(roots) != 4 {
		t.Errorf("left of %d: %v", len(roots), left)
	}
}

func uidOf(h *host) uint32 {
	if h.user != nil {
		return h.user.Uid
	}
	return 0
}

// What cannot have a kept home is refused before anything is made. The control is the same with an
// ordinary user and name.
func TestAKeptHomeIsRefused(t *testing.T) {
	h := newHost(t)
	folder := userDir(t, nil)
	for name, args := range map[string][]string{
		"root inside": {"--home", "mine", "--user", "root"}, "a path": {"--home", "../other"}, "nothing": {"--home", ""},
		"a volume there": {"--home", "mine", "-v", folder + ":/home/agent"}, "memory there": {"--home", "mine", "--tmpfs", "/home/agent"},
		"control": {"--home", "mine"},
	} {
		r := h.clove(append(append([]string{"run", "--rm", "--workspace", folder}, args...), "--", "true")...)
		if (r.code == 0) != (name == "control") || r.code != 0 && r.code != 125 {
			t.Errorf("%s: %d, %s", name, r.code, r.stderr)
		}
	}
	if all := keptHomes(t, h); len(all) != 1 {
		t.Errorf("%v", all)
	}
	if err := os.RemoveAll(h.state + "/homes"); err != nil {
		t.Error(err)
	}
}

// An export is a tar of what the agent left, links as links, and an import into a new home gives it
// back. clove reads neither: the archive's paths that lead out of the home and its links lead to nothing
// of the host. A home in use takes no import. The control is the file beside those.
func TestAKeptHomeIsCopied(t *testing.T) {
	d := newClovedFor(t, groupName)
	outside := userDir(t, map[string]string{"secret": "SECRET\n"})
	if err := os.Chmod(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]*host{"root": d.host, "member": d.member()} {
		folder := userDir(t, nil)
		t.Chdir(folder)
		if r := h.clove("run", "--rm", "--home", "mine", "--", "sh", "-c", "cd /home/agent && echo login >token && ln -s "+outside+"/secret link && ln -s "+outside+" dir && mkfifo pipe"); r.code != 0 {
			t.Fatalf("%s: %s", name, r.stderr)
		}
		out := h.clove("home", "export", "mine")
		kinds := map[string]byte{}
		for archive := tar.NewReader(strings.NewReader(out.stdout)); ; {
			header, err := archive.Next()
			if err != nil {
				break
			}
			kinds[header.Name] = header.Typeflag
		}
		if want := map[string]byte{"./": tar.TypeDir, "./token": tar.TypeReg, "./link": tar.TypeSymlink, "./dir": tar.TypeSymlink, "./pipe": tar.TypeFifo}; out.code != 0 || !maps.Equal(kinds, want) || strings.Contains(out.stdout, "SECRET") {
			t.Errorf("%s: exported: %d, %s, %v", name, out.code, out.stderr, kinds)
		}
		if r := h.clove("home", "export", "other"); r.code != 1 || !strings.Contains(r.stderr, "no kept home other") {
			t.Errorf("%s: another name: %d, %s", name, r.code, r.stderr)
		}
		if r := h.cloveWith(out.stdout, "home", "import", "again"); r.code != 0 {
			t.Errorf("%s: %s", name, r.stderr)
		}
		if r := h.cloveWith(hostileArchive(t, outside), "home", "import", "again"); !strings.Contains(r.stderr, "tar: ") {
			t.Errorf("%s: a hostile archive: %d, %s", name, r.code, r.stderr)
		}
		if r := h.clove("run", "--rm", "--home", "again", "--", "sh", "-c", "cd /home/agent && cat token good && readlink link"); r.stdout != "login\ngood\n"+outside+"/secret\n" {
			t.Errorf("%s: control: %q, %s", name, r.stdout, r.stderr)
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
			t.Errorf("%s: an archive made %v, %v", name, left, err)
		}
		if r := h.clove("run", "-d", "--name", "live", "--home", "mine", "--", "sleep", "600"); r.code != 0 {
			t.Fatalf("%s: %s", name, r.stderr)
		}
		if r := h.cloveWith(out.stdout, "home", "import", "mine"); r.code != 1 || !strings.Contains(r.stderr, "a run has the kept home") {
			t.Errorf("%s: into a home in use: %d, %s", name, r.code, r.stderr)
		}
		if r := h.clove("rm", "--force", "live"); r.code != 0 {
			t.Error(r.stderr)
		}
	}
}

// hostileArchive has a good file, and others by paths and links that lead to a folder of the host.
func hostileArchive(t *testing.T, outside string) string {
	t.Helper()
	var text strings.Builder
	archive := tar.NewWriter(&text)
	for _, header := range []tar.Header{
		{Name: "good", Size: 5}, {Name: "../../.." + outside + "/up", Size: 5}, {Name: outside + "/absolute", Size: 5},
		{Name: "out", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "out/through", Size: 5},
		{Name: "hard", Typeflag: tar.TypeLink, Linkname: outside + "/secret"}, {Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 7},
	} {
		header.Mode = 0o4755
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := archive.Write([]byte("good\n")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// A kept folder is there in the next life of the same name, user and folder, in a run, a detached run and one
// of a manifest, and leaves and comes back as a tar. The controls: a run that does not name it, and the
// home beside it.
func TestAFolderThatStays(t *testing.T) {
	d := newClovedFor(t, groupName)
	for name, h := range map[string]*host{"root": d.host, "member": d.member()} {
		folder := userDir(t, map[string]string{"noter.yaml": "version: 1\nname: noter\ncommand: [sh, -c, 'cat /memory/fact; echo noted >/memory/fact']\nhome: kept\nkeep: [/memory]\nremove: true\n"})
		for _, row := range []struct {
			args string
			code int
			want string // what is printed, on both streams
		}{
			{"run --rm --home mine --keep /memory -- sh -c 'echo learnt >/memory/fact; echo login >~/token; stat -c %U /memory'", 0, "agent\n"},
			{"run --rm --home mine --keep /memory --read-only -- sh -c 'cat /memory/fact ~/token && echo more >>/memory/fact'", 0, "learnt\nlogin\n"},
			{"run --rm --home mine -- sh -c 'cat ~/token; ls /memory'", 2, "login\nls: cannot access '/memory': No such file or directory\n"},
			{"run --rm --home other --keep /memory -- ls -A /memory", 0, ""},
			{"run -d --name live --home mine --keep /memory -- sleep 600", 0, ""},
			{"exec live -- cat /memory/fact", 0, "learnt\nmore\n"},
			{"run --rm --home mine --keep /memory -- sh -c 'echo lost >/memory/fact'", 0, "clove: another run has the kept home mine: this one has a copy, which is not kept\n"},
			{"diff live", 0, ""},
			{"rm --force live", 0, "live\n"},
			{"run --rm --home mine --keep /memory -- cat /memory/fact", 0, "learnt\nmore\n"},
			{"home import mine /memory", 0, ""},
			{"run --rm --home mine --keep /memory -- sh -c 'cat /memory/brought ~/token; ls ~'", 0, "brought\nlogin\ntoken\n"},
			{"home export mine /other", 1, "clove: no folder /other is kept with the home mine\nhint: `clove home ls` lists them\n"},
			{"run noter.yaml", 1, "cat: /memory/fact: No such file or directory\n"},
			{"run noter.yaml", 0, "noted\n"},
		} {
			stdin := ""
			if strings.HasPrefix(row.args, "home import") {
				stdin = archiveOf(t, tar.Header{Name: "brought", Size: 8}, "brought\n")
			}
			r := h.in(folder, stdin, words(row.args)...)
			printed := r.stdout + r.stderr
			if strings.HasPrefix(row.args, "run -d") {
				printed = "" // its id
			}
			if (r.code != row.code && !strings.HasPrefix(row.args, "run noter")) || printed != row.want {
				t.Errorf("%s: %s: %d, %q", name, row.args, r.code, printed)
			}
		}
		if r := h.in(folder, "", "home", "export", "mine", "/memory"); r.code != 0 || !strings.Contains(r.stdout, "./fact") || strings.Contains(r.stdout, "./token") {
			t.Errorf("%s: exported: %d, %s, %.1000q", name, r.code, r.stderr, r.stdout)
		}
		for _, home := range keptHomes(t, h) {
			if !slices.Equal(home.Keep, []string{"/memory"}) {
				t.Errorf("%s: %+v", name, home)
			}
			if r := h.clove("home", "rm", home.ID); r.code != 0 {
				t.Errorf("%s: %s", name, r.stderr)
			}
		}
	}
}

// words are those of a line, in which quotes hold one together.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

// archiveOf is a tar of one file.
func archiveOf(t *testing.T, header tar.Header, content string) string {
	t.Helper()
	var text strings.Builder
	archive := tar.NewWriter(&text)
	header.Mode = 0o644
	if err := archive.WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
