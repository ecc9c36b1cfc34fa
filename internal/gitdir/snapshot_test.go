package gitdir

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	one = "1111111111111111111111111111111111111111"
	two = "2222222222222222222222222222222222222222"
)

// full is a repository with a worktree that has all that a snapshot takes, and much that it does not.
func full(t *testing.T) (base string) {
	t.Helper()
	base = repository(t)
	for name, text := range map[string]string{
		"config":          "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch /x\"\n[remote \"origin\"]\n\turl = https://u:SECRET@host/x.git?t=SECRET\n[http]\n\textraHeader = SECRET\n[user]\n\tname = \"A # B\" ; c\n",
		"packed-refs":     "# pack-refs with: peeled fully-peeled sorted \n" + one + " refs/heads/main\n" + one + " refs/tags/v1\n^" + two + "\n" + one + " refs/heads/..\n",
		"refs/heads/main": two + "\n", "refs/heads/wt": one + "\n", "refs/heads/broken": "SECRET", "refs/remotes/origin/HEAD": "ref: refs/remotes/origin/main\n",
		"info/exclude": "*.o\n", "logs/refs/heads/main": "log\n", "hooks/pre-commit": "SECRET", "credentials": "SECRET", "modules/x/config": "SECRET",
		"worktrees/wt/HEAD": "ref: refs/heads/wt\n", "worktrees/wt/index": "DIRC", "worktrees/wt/MERGE_HEAD": two + "\n", "worktrees/wt/config.worktree": "SECRET",
		"worktrees/wt/logs/HEAD": "log\n", "worktrees/other/HEAD": "SECRET", "FETCH_HEAD": "SECRET",
	} {
		write(t, base, "repo/.git/"+name, text)
	}
	return base
}

func TestASnapshotHasWhatAnAgentNeeds(t *testing.T) {
	t.Parallel()
	base := full(t)
	link, _ := Find(base+"/wt", "")
	s, err := link.Read("/workspace")
	if err != nil || s.Ref != "refs/heads/wt" || s.Tip != one {
		t.Fatalf("%+v, %v", s, err)
	}
	want := []string{"HEAD", "config", "info/exclude", "logs/refs/heads/main", "objects/info/alternates", "packed-refs", "refs/remotes/origin/HEAD",
		"worktrees/wt/HEAD", "worktrees/wt/MERGE_HEAD", "worktrees/wt/commondir", "worktrees/wt/gitdir", "worktrees/wt/index", "worktrees/wt/logs/HEAD"}
	if got := slices.Sorted(maps.Keys(s.Files)); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	for name, text := range s.Files {
		if strings.Contains(text, "SECRET") || strings.Contains(text, "fsmonitor") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if got := Packed(s.Files["packed-refs"]); len(got) != 3 || got["refs/heads/main"] != two || got["refs/tags/v1"] != one || got["refs/heads/wt"] != one {
		t.Errorf("refs %q", got)
	}
	config := settingsIn(s.Files["config"])
	if lookup(config, "remote.*.url") != "https://host/x.git" || lookup(config, "user.name") != "A # B" {
		t.Errorf("config %q", config)
	}
	if ref, tip, err := link.Current(); err != nil || ref != s.Ref || tip != one {
		t.Errorf("%s, %s, %v", ref, tip, err)
	}
	write(t, base, "repo/.git/worktrees/wt/HEAD", two+"\n")
	if ref, tip, err := link.Current(); err != nil || ref != "HEAD" || tip != two {
		t.Errorf("detached: %s, %s, %v", ref, tip, err)
	}
}

// What cannot be shown is refused with a reason; the control is the test above.
func TestRepositoriesThatAreNotShown(t *testing.T) {
	t.Parallel()
	tests := map[string]func(base string) error{
		"borrows objects": func(base string) error {
			return os.WriteFile(base+"/repo/.git/objects/info/alternates", []byte("/x\n"), 0o644)
		},
		"in the form": func(base string) error {
			return os.WriteFile(base+"/repo/.git/config", []byte("[extensions]\nrefStorage=reftable\n"), 0o644)
		},
		"does not underst": func(base string) error {
			return os.WriteFile(base+"/repo/.git/worktrees/wt/HEAD", []byte("ref: refs/heads/../x\n"), 0o644)
		},
		"another owner":     func(base string) error { return os.Chown(base+"/repo/.git", 12345, 12345) },
		"cannot be opened":  func(base string) error { return relink(base + "/repo") },
		"cannot be read":    func(base string) error { return relink(base + "/repo/.git/config") },
		"the workspace its": nil,
	}
	for why, do := range tests {
		base := full(t)
		link, _ := Find(base+"/wt", "")
		place := "/workspace"
		switch {
		case do == nil:
			place = base
		case why == "another owner" && os.Geteuid() != 0:
			continue
		default:
			if err := do(base); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := link.Read(place); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

func TestNothingIsShownAtAPlaceOfTheKernels(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"/dev/shm/repo", "/proc/1/cwd", "/sys/x"} {
		if _, err := (Link{Target: dir, Own: dir, Common: dir}).Read("/workspace"); err == nil || !strings.Contains(err.Error(), "the kernel's") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// relink puts a link to path in its place.
func relink(path string) error {
	if err := os.Rename(path, path+".real"); err != nil {
		return err
	}
	return os.Symlink(path+".real", path)
}

func TestNamesOfRefs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refs/heads/x", "refs/heads/a/b-c.d", "refs/heads/ü"} {
		if !IsRef(name) {
			t.Errorf("%q is none", name)
		}
	}
	for _, name := range []string{"", "HEAD", "heads/x", "refs/heads/../x", "refs/heads/-x", "refs/heads/.x", "refs/heads/x.lock", "refs/heads/a b", "refs/heads/a\x1b", "refs/heads//x", "refs/heads/x/", "refs/heads/a@{1}", "refs/heads/a:b", "refs/heads/x."} {
		if IsRef(name) {
			t.Errorf("%q is one", name)
		}
	}
}

func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"[a]\nb=c", "[remote \"o\"]\n\turl = https://u:p@h/\\\n x", "[a \"b", "\x00", "[user] name = \"x\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// What is shown reads as itself, so nothing in a value can become another setting.
		first := shown(settingsIn(text))
		if again := shown(settingsIn(first)); again != first {
			t.Errorf("%q\nbecomes %q", first, again)
		}
	})
}
