package testhost

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// witness is a testing.TB that only records how it was ended.
type witness struct {
	testing.TB
	ended string
	said  []string
}

func (w *witness) Helper()             {}
func (w *witness) Logf(string, ...any) {}
func (w *witness) Errorf(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}
func (w *witness) Fatalf(format string, args ...any) { w.end("failed", fmt.Sprintf(format, args...)) }
func (w *witness) Skipf(format string, args ...any)  { w.end("skipped", fmt.Sprintf(format, args...)) }
func (w *witness) end(how, words string) {
	w.ended, w.said = how, append(w.said, words)
	runtime.Goexit()
}

// watch runs body as a test would run it.
func watch(t *testing.T, body func(testing.TB)) *witness {
	t.Helper()
	w := &witness{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(w)
	}()
	<-done
	return w
}

func TestMissing(t *testing.T) {
	for _, c := range []struct{ ci, ended string }{
		{"true", "failed"},
		{"", "skipped"},
		{"false", "skipped"},
	} {
		t.Run("CI="+c.ci, func(t *testing.T) {
			t.Setenv("CI", c.ci)
			w := watch(t, func(t testing.TB) { Missing(t, "no %s here", "loom") })
			if w.ended != c.ended || !strings.Contains(w.said[0], "no loom here") {
				t.Errorf("the test %s with %q, want it %s with the reason", w.ended, w.said, c.ended)
			}
		})
	}
}

func TestTool(t *testing.T) {
	t.Setenv("CI", "true")
	if path := Tool(t, "sh"); !filepath.IsAbs(path) {
		t.Errorf("Tool(sh) = %q, want an absolute path", path)
	}
	if w := watch(t, func(t testing.TB) { Tool(t, "no-such-program-of-clove") }); w.ended != "failed" {
		t.Errorf("a missing tool %s the test in CI, want failed", w.ended)
	}
}

func TestBinary(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("CLOVE_BIN_DIR", folder)
	if w := watch(t, func(t testing.TB) { Binary(t, "clove") }); w.ended != "failed" {
		t.Errorf("a binary that was not built %s the test, want failed", w.ended)
	}
	if err := os.WriteFile(filepath.Join(folder, "clove"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, want := Binary(t, "clove"), filepath.Join(folder, "clove"); got != want {
		t.Errorf("Binary = %q, want %q", got, want)
	}
}

func TestModuleRoot(t *testing.T) {
	if _, err := os.Stat(filepath.Join(moduleRoot(t), "go.mod")); err != nil {
		t.Error(err)
	}
	t.Chdir("/")
	if w := watch(t, func(t testing.TB) { moduleRoot(t) }); w.ended != "failed" {
		t.Errorf("outside any module the test %s, want failed", w.ended)
	}
}

func TestLaneAndPatience(t *testing.T) {
	defer func() { host = pace{work: slow} }()
	for _, c := range []struct {
		env, lane string
		factor    float64 // of the host
		patience  time.Duration
	}{
		{"", LaneRoot, 1, time.Second},
		{"root", LaneRoot, 0.5, time.Second},
		{"", LaneRoot, 2.5, 2500 * time.Millisecond},
		{"", LaneRoot, 1000, maxSlowness * time.Second},
		{"vm", LaneVM, 1, vmSlowness * time.Second},
		{"vm", LaneVM, 10, 10 * time.Second},
	} {
		t.Setenv("CLOVE_LANE", c.env)
		host = pace{work: func() float64 { return c.factor }}
		if Lane() != c.lane || Patience(time.Second) != c.patience {
			t.Errorf("%+v: lane %s, patience %s", c, Lane(), Patience(time.Second))
		}
	}
}

func TestTheHostIsMeasuredOnceASecond(t *testing.T) {
	measured := 0
	p := pace{work: func() float64 { measured++; return float64(measured) }}
	begin := time.Now()
	for _, c := range []struct {
		after time.Duration
		want  float64
	}{{0, 1}, {time.Second, 1}, {time.Second + 1, 2}, {2 * time.Second, 2}} {
		if got := p.slowness(begin.Add(c.after)); got != c.want {
			t.Errorf("after %s: measurement %v, want %v", c.after, got, c.want)
		}
	}
	if factor := slow(); factor <= 0 {
		t.Errorf("this host's factor is %v", factor)
	}
}

func TestCgroupOfAFolderWithoutAny(t *testing.T) {
	if got := cgroupOf(t.TempDir()); got != CgroupV1 {
		t.Errorf("cgroupOf(no cgroup2 anywhere) = %s, want v1", got)
	}
}

func TestLacking(t *testing.T) {
	if got := lacking(1000); !strings.Contains(got, "uid 1000") {
		t.Errorf("lacking as uid 1000 = %q, want it named", got)
	}
	const beyondAll = 63 // no kernel has this capability
	if got := lacking(0, beyondAll); !strings.Contains(got, "63") {
		t.Errorf("lacking capability 63 = %q, want it named", got)
	}
	if got := lacking(0); got != "" {
		t.Errorf("root that needs nothing lacks %q", got)
	}
}

func TestLockFileNamesItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	fd, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	holder, err := os.ReadFile(path)
	if want := fmt.Appendln(nil, os.Getpid()); err != nil || !bytes.Equal(holder, want) {
		t.Errorf("the lock names %q, %v, want %q", holder, err, want)
	}
	second := make(chan error, 1)
	go func() {
		_, err := lockFile(path)
		second <- err
	}()
	select {
	case err := <-second:
		t.Errorf("the lock was had twice (%v)", err)
	case <-time.After(50 * time.Millisecond): // still waiting, as it should
	}
	if err := os.NewFile(uintptr(fd), path).Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-second:
		if err != nil {
			t.Errorf("the second process cannot have the lock after the first: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the second process still waits for a lock that no process holds")
	}
}

func TestLockFileInNoFolder(t *testing.T) {
	if _, err := lockFile(filepath.Join(t.TempDir(), "absent", "lock")); err == nil {
		t.Error("lockFile locked a file in a folder that does not exist")
	}
}
