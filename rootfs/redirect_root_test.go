//go:build root

package rootfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// moved is a sandbox over a host directory with src, in which src/kept is never touched.
func moved(t *testing.T, top, name string, agent func(in func(string) string)) sandbox {
	t.Helper()
	s, err := newSandbox(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	plant(t, s.host, "d src", "f src/kept 1", "d src/sub", "f src/sub/deep 1", "f src/gone 1", "f src/changed 1", "d other", "f other/x 1")
	if err := s.mount(); err != nil {
		t.Fatal(err)
	}
	agent(func(name string) string { return filepath.Join(s.merged, name) })
	return s
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// gitMv renames src, and changes some of its files.
func gitMv(t *testing.T) func(in func(string) string) {
	return func(in func(string) string) {
		mustDo(t, os.Rename(in("src"), in("lib")), os.Remove(in("lib/gone")), os.WriteFile(in("lib/changed"), []byte("22"), 0o644))
	}
}

func TestApplyRenamesTheHostsDirectory(t *testing.T) {
	s := moved(t, layerMounts(t), "s", gitMv(t))
	before := statOf(t, s.host, "src/kept")
	// A file that the host adds goes along.
	plant(t, s.host, "f src/added 1")
	mustDo(t, s.unmount())
	s.upper.Since = time.Now().Add(-time.Hour) // the directory has changed since: its handle decides
	for _, c := range []string{"gone", "changed"} {
		mustDo(t, os.Remove(filepath.Join(s.host, "src", c)))
	}
	found, done, err := s.outcome(t.Context())
	want := []string{"A /w/lib/changed", "R /w/lib (from /w/src)"}
	if got := lines(done); err != nil || !slices.Equal(got, want) || len(found) != 2 {
		t.Fatalf("found %q, done %q, %v", lines(found), got, err)
	}
	if after := statOf(t, s.host, "lib/kept"); after.Ino != before.Ino || after.Ctim != before.Ctim {
		t.Errorf("a file that was not touched is another one")
	}
	now := []string{"dir 755 lib ", "file 644 lib/added 1", "file 644 lib/changed 22", "file 644 lib/kept 1", "dir 755 lib/sub ", "file 644 lib/sub/deep 1",
		"dir 755 other ", "file 644 other/x 1"}
	if got := listing(t, s.host); !slices.Equal(got, now) {
		t.Errorf("the host has %q", got)
	}
	if found, done, err := s.outcome(t.Context()); err != nil || len(found)+len(done) != 0 {
		t.Errorf("the second time: found %q, done %q, %v", lines(found), lines(done), err)
	}
}

// Package managers rename what is there out of the way, install, and remove or restore it.
func TestApplyAfterRenamesOfPackageManagers(t *testing.T) {
	top := layerMounts(t)
	for name, agent := range map[string]func(in func(string) string){
		"replaced": func(in func(string) string) {
			mustDo(t, os.Rename(in("src"), in(".src-x7")), os.Mkdir(in("src"), 0o755), os.WriteFile(in("src/new"), nil, 0o644), os.RemoveAll(in(".src-x7")))
		},
		"put aside": func(in func(string) string) {
			mustDo(t, os.Rename(in("src"), in("src.old")), os.Mkdir(in("src"), 0o755), os.WriteFile(in("src/new"), nil, 0o644))
		},
		"put back": func(in func(string) string) { mustDo(t, os.Rename(in("src"), in("z")), os.Rename(in("z"), in("src"))) },
		"into a new one": func(in func(string) string) {
			mustDo(t, os.Mkdir(in("d"), 0o755), os.Rename(in("src"), in("d/src")), os.Rename(in("d/src/sub"), in("sub")), os.Rename(in("other"), in("d/src/sub")))
		},
		"over another": func(in func(string) string) { mustDo(t, os.RemoveAll(in("other")), os.Rename(in("src"), in("other"))) },
		"out of a removed one": func(in func(string) string) {
			mustDo(t, os.Rename(in("src/sub"), in("sub")), os.RemoveAll(in("src")), os.Chmod(in("sub"), 0o700))
		},
		"a row": func(in func(string) string) {
			mustDo(t, os.Rename(in("other"), in("a")), os.Rename(in("src"), in("other")), os.Rename(in("other/sub"), in("src")))
		},
	} {
		s := moved(t, top, name, agent)
		want := listing(t, s.merged)
		mustDo(t, s.unmount())
		found, done, err := s.outcome(t.Context())
		if err != nil || !slices.Equal(found, done) {
			t.Errorf("%s: found %q, done %q, %v", name, lines(found), lines(done), err)
		}
		if got := listing(t, s.host); !slices.Equal(got, want) {
			t.Errorf("%s: found %q, the host has %q, the agent saw %q", name, lines(found), got, want)
		}
		if found, done, err := s.outcome(t.Context()); err != nil || len(found)+len(done) != 0 {
			t.Errorf("%s, the second time: found %q, done %q, %v", name, lines(found), lines(done), err)
		}
	}
}

// If the origin of a renamed directory is gone, or another directory has its name, the rename is
// refused and removes nothing; while the agent lives, and between two lives of a layer.
func TestARenameOfAnotherDirectoryIsRefused(t *testing.T) {
	top := layerMounts(t)
	for name, host := range map[string]func(at func(string) string){
		"control": func(func(string) string) {},
		"gone":    func(at func(string) string) { mustDo(t, os.RemoveAll(at("src"))) },
		"renamed": func(at func(string) string) { mustDo(t, os.Rename(at("src"), at("src2"))) },
		"replaced": func(at func(string) string) {
			mustDo(t, os.Rename(at("src"), at("src2")), os.Mkdir(at("src"), 0o755), os.WriteFile(at("src/kept"), []byte("host"), 0o644))
		},
		"another's": func(at func(string) string) {
			mustDo(t, os.RemoveAll(at("src")), os.Rename(at("other"), at("src")))
		},
		"a link": func(at func(string) string) {
			mustDo(t, os.Rename(at("src"), at("src2")), os.Symlink("src2", at("src")))
		},
	} {
		for _, lives := range []int{1, 2} {
			s := moved(t, top, name+string(rune('0'+lives)), gitMv(t))
			s.upper.Since = time.Now().Add(-time.Hour) // the handle alone decides
			at := func(name string) string { return filepath.Join(s.host, name) }
			if lives == 2 {
				mustDo(t, s.unmount())
			}
			host(at)
			if lives == 2 {
				mustDo(t, s.mount())
				_, _ = os.ReadDir(filepath.Join(s.merged, "lib"))
			}
			before := listing(t, s.host)
			mustDo(t, s.unmount())
			found, done, err := s.outcome(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			refused := !slices.ContainsFunc(done, func(c Change) bool { return c.Refused == "" })
			unchanged := slices.Equal(listing(t, s.host), before)
			deletes := slices.ContainsFunc(found, func(c Change) bool { return c.Kind == Deleted && name != "control" })
			if control := name == "control"; refused == control || unchanged == control || deletes {
				t.Errorf("%s, %d lives: found %q, done %q, unchanged: %v", name, lives, lines(found), lines(done), unchanged)
			}
		}
	}
}

// Over a file system without handles, the directory must be unchanged since the layer began.
func TestAnOriginWithoutAHandle(t *testing.T) {
	top := layerMounts(t)
	dir, err := os.Open(top)
	mustDo(t, err)
	defer dir.Close()
	for since, want := range map[time.Time]bool{time.Now().Add(time.Hour): true, time.Now().Add(-time.Hour): false, {}: false} {
		if got := isOrigin(dir, "", since); got != want {
			t.Errorf("a layer of %s: %v", since, got)
		}
	}
}

// forge writes the attribute that only the kernel can write into a layer in use.
func forge(t *testing.T, at, redirect string) {
	t.Helper()
	mustDo(t, unix.Setxattr(at, "trusted.overlay.redirect", []byte(redirect), 0))
}

// A layer with forged redirects shows the agent nothing from outside of its lower layer, and
// neither Diff nor Apply takes one of them for a directory. The control: one that names a
// directory of the lower layer shows it, as the agent sees that anyway.
func TestForgedRedirects(t *testing.T) {
	top := layerMounts(t)
	for i, redirect := range []string{"victim", "/victim", "..", "../outside", "/..", "/../outside", "/victim/../../outside", "/.", ".", "", "/", "//victim", "victim/sub",
		"link", "/link/sub", "/link", "file", "/none", "mount", "/mount", "/" + strings.Repeat("v/", 1500) + "v"} {
		control := strings.Trim(redirect, "/") == "victim" && !strings.HasPrefix(redirect, "//")
		s, err := newSandbox(filepath.Join(top, string(rune('a'+i))))
		mustDo(t, err)
		outside := filepath.Join(filepath.Dir(s.host), "outside")
		mustDo(t, os.Mkdir(outside, 0o755))
		plant(t, outside, "f secret 1", "d sub", "f sub/secret 1")
		plant(t, s.host, "d victim", "f victim/own 1", "d victim/sub", "f file 1", "d mount", "l link "+outside)
		mustDo(t, unix.Mount(outside, filepath.Join(s.host, "mount"), "", unix.MS_BIND, ""))
		plant(t, s.upper.Dir, "d forged")
		forge(t, filepath.Join(s.upper.Dir, "forged"), redirect)
		if err := s.mount(); err == nil {
			shows := map[string]bool{}
			for _, name := range []string{"secret", "own"} {
				_, err := os.Lstat(filepath.Join(s.merged, "forged", name))
				shows[name] = err == nil
			}
			if shows["secret"] || shows["own"] != control {
				t.Errorf("%.40q shows the agent %v", redirect, shows)
			}
			mustDo(t, s.unmount())
		}
		before := listing(t, filepath.Dir(s.host))
		found, done, err := s.outcome(t.Context())
		mustDo(t, err)
		applied := slices.ContainsFunc(done, func(c Change) bool { return c.Refused == "" })
		if now := listing(t, filepath.Dir(s.host)); applied != control || slices.Equal(now, before) == control {
			t.Errorf("%.40q: found %q, done %q", redirect, lines(found), lines(done))
		}
		mustDo(t, unix.Unmount(filepath.Join(s.host, "mount"), 0))
	}
}

// Two directories that claim the same origin, and one that would move into itself.
func TestForgedRedirectsMeet(t *testing.T) {
	s, err := newSandbox(layerMounts(t))
	mustDo(t, err)
	plant(t, s.host, "d d", "d d/e", "f d/e/x 1", "f d/x 1")
	plant(t, s.upper.Dir, "d d", "d d/e", "d one", "d two")
	forge(t, filepath.Join(s.upper.Dir, "d/e"), "/d")
	forge(t, filepath.Join(s.upper.Dir, "one"), "/d/e")
	forge(t, filepath.Join(s.upper.Dir, "two"), "/d/e")
	before := listing(t, s.host)
	_, done, err := s.outcome(t.Context())
	refused := slices.DeleteFunc(lines(done), func(line string) bool { return !strings.Contains(line, "refused") })
	if now := listing(t, s.host); err != nil || len(refused) < 2 || len(now) != len(before) {
		t.Errorf("done %q, %v, the host has %q", lines(done), err, now)
	}
}

// If another directory gets the name between the check and the rename, it is moved back.
func TestARenameMovesOnlyWhatItChecked(t *testing.T) {
	s := moved(t, layerMounts(t), "s", gitMv(t))
	mustDo(t, s.unmount())
	a, err := openApplier(s.upper, s.host, nil)
	mustDo(t, err)
	defer a.close()
	mustDo(t, a.enter("."))
	source, err := a.target.openDir("src")
	mustDo(t, err)
	defer source.Close()
	at := func(name string) string { return filepath.Join(s.host, name) }
	mustDo(t, os.Rename(at("src"), at("away")), os.Rename(at("other"), at("src")))
	before := listing(t, s.host)
	if err := a.move(source, "src", "lib"); err == nil || !slices.Equal(listing(t, s.host), before) {
		t.Errorf("another directory: %v, the host has %q", err, listing(t, s.host))
	}
	mustDo(t, os.Rename(at("src"), at("other")), os.Rename(at("away"), at("src")))
	if err := a.move(source, "src", "lib"); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestApplyRefusesACircle(t *testing.T) {
	top := layerMounts(t)
	for name, agent := range map[string]func(in func(string) string){
		"exchanged": func(in func(string) string) {
			mustDo(t, os.Rename(in("src"), in("z")), os.Rename(in("other"), in("src")), os.Rename(in("z"), in("other")))
		},
		"into its own name": func(in func(string) string) {
			mustDo(t, os.Rename(in("src"), in("z")), os.Mkdir(in("src"), 0o755), os.Rename(in("z"), in("src/src")))
		},
	} {
		s := moved(t, top, name, agent)
		mustDo(t, s.unmount())
		before := listing(t, s.host)
		_, done, err := s.outcome(t.Context())
		if err != nil || len(done) != 2 || done[0].Refused == "" || done[1].Refused == "" || !slices.Equal(listing(t, s.host), before) {
			t.Errorf("%s: done %q, %v", name, lines(done), err)
		}
	}
}

// The host's own files may become programs by the name that their directory gets.
func TestARenamedDirectoryNeedsConsent(t *testing.T) {
	for name, want := range map[string]struct {
		from, to string
		file     string
		class    Class
		refused  bool
	}{
		"control":     {"a", "b", "f a/pre-push 1", "", false},
		"hooks":       {"a", ".git/hooks", "f a/x 1", ClassExecutable, false},
		"editor":      {"a", ".vscode", "f a/tasks.json {}", ClassExecutable, false},
		"tool":        {"a", ".newtool", "f a/run.json {}", ClassUnknown, false},
		"harmless":    {"a", ".newtool", "f a/text 1", "", false},
		"agents":      {"node_modules/a", "lib", "f node_modules/a/AGENTS.md 1", ClassInstructions, false},
		"scripts":     {"node_modules/a", "lib", "f node_modules/a/package.json {}", ClassExecutable, false},
		"link":        {"c/d", "e", "l c/d/l ../../x", "", true},
		"link inside": {"c/d", "c/e", "l c/d/l ../../x", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := newSandbox(layerMounts(t))
			mustDo(t, err)
			plant(t, s.host, "d a", "d .git", "d node_modules", "d node_modules/a", "d c", "d c/d", want.file)
			mustDo(t, s.mount(), os.Rename(filepath.Join(s.merged, want.from), filepath.Join(s.merged, want.to)), s.unmount())
			found, err := Diff(t.Context(), []Upper{s.upper}, Access{})
			if err != nil || len(found) != 1 || found[0].Class() != want.class || (found[0].Refused != "") != want.refused {
				t.Errorf("found %q, %v", lines(found), err)
			}
		})
	}
}

// After an apply, the next life of a kept layer finds what the host has under the new name. The
// control: without settling it does not see the file that it never touched.
func TestAKeptLayerAfterAnAppliedRename(t *testing.T) {
	top := layerMounts(t)
	for _, settled := range []bool{false, true} {
		s := moved(t, top, map[bool]string{false: "control", true: "settled"}[settled], func(in func(string) string) {
			mustDo(t, os.Rename(in("src"), in("lib")), os.Mkdir(in("new"), 0o755), os.Rename(in("lib/sub"), in("new/sub")), os.Rename(in("other"), in("lib/other")))
		})
		want := listing(t, s.merged)
		mustDo(t, s.unmount())
		if _, done, err := s.outcome(t.Context()); err != nil || len(done) != 4 {
			t.Fatalf("done %q, %v", lines(done), err)
		}
		if settled {
			mustDo(t, settleMoves(s.upper.Dir, s.host))
		}
		mustDo(t, s.mount())
		if got := listing(t, s.merged); slices.Equal(got, want) != settled {
			t.Errorf("settled: %v, the agent sees %q, and saw %q", settled, got, want)
		}
		mustDo(t, os.WriteFile(filepath.Join(s.merged, "lib/kept"), []byte("second"), 0o644), s.unmount())
		s.upper.Since = time.Now().Add(time.Hour)
		if found, _, err := s.outcome(t.Context()); settled && (err != nil || !slices.Equal(lines(found), []string{"C /w/lib/kept"})) {
			t.Errorf("the second life changed %q, %v", lines(found), err)
		}
	}
}
