package cgroups

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// figures is the text form of the present figures, in the order of the fields.
func figures(s Stats) string {
	var parts []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsNil() {
			parts = append(parts, fmt.Sprintf("%s=%v", v.Type().Field(i).Name, field.Elem()))
		}
	}
	return strings.Join(parts, " ")
}

var v1Files = map[[2]string]string{
	{"cpuacct", "cpuacct.usage"}:                           "4000000000\n",
	{"cpuacct", "cpuacct.usage_user"}:                      "2000000000\n",
	{"cpuacct", "cpuacct.usage_sys"}:                       "1000000000\n",
	{"cpu", "cpu.stat"}:                                    "nr_periods 9\nnr_throttled 3\nthrottled_time 250000000\n",
	{"memory", "memory.usage_in_bytes"}:                    "100\n",
	{"memory", "memory.max_usage_in_bytes"}:                "200\n",
	{"memory", "memory.oom_control"}:                       "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
	{"pids", "pids.current"}:                               "5\n",
	{"pids", "pids.peak"}:                                  "6\n",
	{"pids", "pids.events"}:                                "max 2\n",
	{"blkio", "blkio.throttle.io_service_bytes_recursive"}: "8:0 Read 10\n8:0 Write 20\nTotal 30\n",
}

var v2Files = map[[2]string]string{
	{"", "cgroup.controllers"}: "cpuset cpu io memory pids\n",
	{"", "cgroup.procs"}:       "",
	{"", "cpu.stat"}: "usage_usec 4000000\nuser_usec 3000000\nsystem_usec 1000000\n" +
		"nr_periods 9\nnr_throttled 3\nthrottled_usec 250000\nnr_bursts 0\nburst_usec 0\n",
	{"", "memory.current"}: "100\n",
	{"", "memory.peak"}:    "200\n",
	{"", "memory.events"}:  "low 0\nhigh 4\nmax 7\noom 1\noom_kill 1\noom_group_kill 1\n",
	{"", "pids.current"}:   "5\n",
	{"", "pids.peak"}:      "6\n",
	{"", "pids.events"}:    "max 2\n",
	{"", "io.stat"}:        "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n8:16 rbytes=1 wbytes=2 rios=1 wios=1\n",
}

// with returns a copy of files changed by each pair; "-" removes a file.
func with(files map[[2]string]string, change map[[2]string]string) map[[2]string]string {
	changed := maps.Clone(files)
	for at, text := range change {
		changed[at] = text
		if text == "-" {
			delete(changed, at)
		}
	}
	return changed
}

func TestStats(t *testing.T) {
	const common = "Pids=5 PidsPeak=6 PidsMaxEvents=2"
	const inV2 = common + " IOReadBytes=11 IOWriteBytes=22"
	cases := []struct {
		name  string
		files map[[2]string]string
		want  string
	}{
		{"v1", v1Files, "CPU=4s CPUUser=2.666666667s CPUSystem=1.333333333s CPUThrottled=250ms CPUThrottledPeriods=3 " +
			"MemoryBytes=100 MemoryPeakBytes=200 OOMKills=1 " + common},
		{"v1 on an older kernel", with(v1Files, map[[2]string]string{
			{"pids", "pids.peak"}: "-", {"memory", "memory.oom_control"}: "under_oom 0\n", {"cpuacct", "cpuacct.usage_sys"}: "-",
			{"cpu", "cpu.stat"}: "nr_throttled 0\nthrottled_time 0\n"}),
			"CPU=4s CPUThrottled=0s CPUThrottledPeriods=0 MemoryBytes=100 MemoryPeakBytes=200 Pids=5 PidsMaxEvents=2"},
		{"hybrid reads v1", with(v1Files, map[[2]string]string{{"", "cpu.stat"}: "usage_usec 1\n"}),
			"CPU=4s CPUUser=2.666666667s CPUSystem=1.333333333s CPUThrottled=250ms CPUThrottledPeriods=3 " +
				"MemoryBytes=100 MemoryPeakBytes=200 OOMKills=1 " + common},
		{"v2", v2Files, "CPU=4s CPUUser=3s CPUSystem=1s CPUThrottled=250ms CPUThrottledPeriods=3 " +
			"MemoryBytes=100 MemoryPeakBytes=200 MemoryHighEvents=4 MemoryLimitOOMs=1 OOMKills=1 OOMGroupKills=1 " + inV2},
		{"v2 on an older kernel", with(v2Files, map[[2]string]string{{"", "memory.peak"}: "-", {"", "pids.peak"}: "-",
			{"", "memory.events"}: "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"}),
			"CPU=4s CPUUser=3s CPUSystem=1s CPUThrottled=250ms CPUThrottledPeriods=3 MemoryBytes=100 MemoryHighEvents=0 " +
				"MemoryLimitOOMs=0 OOMKills=0 Pids=5 PidsMaxEvents=2 IOReadBytes=11 IOWriteBytes=22"},
		{"v2 without controllers", map[[2]string]string{{"", "cgroup.controllers"}: "\n",
			{"", "cpu.stat"}: "usage_usec 1000\nuser_usec 1000\nsystem_usec 0\n"}, "CPU=1ms CPUUser=1ms CPUSystem=0s"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := fakeGroup(t, c.files).Stats()
			if got := figures(s); err != nil || got != c.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, c.want)
			}
		})
	}
}

func TestStatsOfAGroupThatIsGoneAreAbsent(t *testing.T) {
	for _, g := range []*Group{absentGroup(t, ""), absentGroup(t, "memory", "cpuacct", "blkio")} {
		s, err := g.Stats()
		if got := figures(s); err != nil || got != "" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestStatsRefuseWhatIsNoNumber(t *testing.T) {
	for _, files := range []map[[2]string]string{
		with(v1Files, map[[2]string]string{{"pids", "pids.peak"}: "many\n"}),
		with(v1Files, map[[2]string]string{{"cpu", "cpu.stat"}: "nr_throttled x\n"}),
		with(v2Files, map[[2]string]string{{"", "memory.events"}: "high x\n"}),
		with(v2Files, map[[2]string]string{{"", "memory.peak"}: "-1\n"}),
	} {
		if s, err := fakeGroup(t, files).Stats(); err == nil {
			t.Errorf("accepted: %s", figures(s))
		}
	}
}

func TestCPUTime(t *testing.T) {
	for name, files := range map[string]map[[2]string]string{"v1": v1Files, "v2": v2Files} {
		if got, err := fakeGroup(t, files).CPUTime(); err != nil || got != 4*time.Second {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	if _, err := absentGroup(t, "").CPUTime(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a group that is gone: %v", err)
	}
	uncounted := fakeGroup(t, map[[2]string]string{{"pids", "cgroup.procs"}: ""})
	if _, err := uncounted.CPUTime(); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a living group in no accounting hierarchy: %v", err)
	}
}

func TestShareAddsUpAndKeepsTheRatio(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := time.Duration(rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "total"))
		user := rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "user")
		system := rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "system")
		u, s := share(total, user, system)
		if *u+*s != total || *u < 0 || *s < 0 {
			t.Fatalf("%s and %s of %s", *u, *s, total)
		}
		if system == 0 && *s != 0 || user == 0 && system > 0 && *u != 0 {
			t.Fatalf("%s and %s from %d and %d", *u, *s, user, system)
		}
	})
}

// TestSinceTakesOffWhatWasBefore: the parts still add up to the whole.
func TestSinceTakesOffWhatWasBefore(t *testing.T) {
	t.Parallel()
	of := func(d time.Duration) *time.Duration { return &d }
	before := CPUUse{Total: 40 * time.Millisecond, User: 10 * time.Millisecond, System: 30 * time.Millisecond}
	for name, c := range map[string]struct {
		counted Stats
		before  CPUUse
		want    string
	}{
		"of v2":                {Stats{CPU: of(time.Second), CPUUser: of(700 * time.Millisecond), CPUSystem: of(300 * time.Millisecond)}, before, "CPU=960ms CPUUser=690ms CPUSystem=270ms"},
		"parts that are ticks": {Stats{CPU: of(time.Second), CPUUser: of(700 * time.Millisecond), CPUSystem: of(300 * time.Millisecond)}, CPUUse{Total: 40 * time.Millisecond, System: 4}, "CPU=960ms CPUUser=700ms CPUSystem=260ms"},
		"no parts":             {Stats{CPU: of(time.Second)}, before, "CPU=960ms"},
		"nothing before":       {Stats{CPU: of(time.Second), CPUUser: of(time.Second), CPUSystem: of(0)}, CPUUse{}, "CPU=1s CPUUser=1s CPUSystem=0s"},
		"more before":          {Stats{CPU: of(9), CPUUser: of(9), CPUSystem: of(0)}, before, "CPU=0s CPUUser=0s CPUSystem=0s"},
		"not counted":          {Stats{}, before, ""},
	} {
		if got := figures(c.counted.Since(c.before)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestParseCountNeverWraps(t *testing.T) {
	for field, want := range map[string]int64{"0": 0, "9223372036854775807": math.MaxInt64, "18446744073709551615": math.MaxInt64} {
		if got, err := parseCount(field); err != nil || got != want {
			t.Errorf("%s: got %d, %v", field, got, err)
		}
	}
}

func TestFilesKeepTheFirstError(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "x\n", "b": "y\n", "max": "max\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var f files
	if f.number(dir, "max") != nil || f.number(dir, "absent") != nil || f.number("", "a") != nil || f.err != nil {
		t.Fatalf("an absent figure: %v", f.err)
	}
	f.number(dir, "a")
	f.number(dir, "b")
	if f.err == nil || !strings.Contains(f.err.Error(), filepath.Join(dir, "a")) {
		t.Errorf("got %v", f.err)
	}
}
