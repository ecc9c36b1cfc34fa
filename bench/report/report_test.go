package report

import (
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/bench"
)

var update = flag.Bool("update", false, "write the goldens anew")

func number(n int64) *int64 { return &n }

// hostile are texts of agents and suites that no format may take for its own.
const hostile = `<script>alert(1)</script>|"quoted" & =1+1` + "\x1b[31m\x00\u202e"

func sample(t *testing.T) Data {
	t.Helper()
	d := Data{Dir: t.TempDir(), Manifest: bench.Manifest{
		Version: 1, Suite: bench.SuiteID{Name: "sample", Version: "1 " + hostile, SHA256: "abc"}, Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Host:   bench.Machine{Kernel: "6.1", Cgroup: "v2", Processor: "CPU " + hostile, CPUs: 4, Findings: []bench.Finding{{Name: "SMT", Value: "1", Hint: "off"}}},
		Parity: true, Attempts: 5, Enforced: []bench.Knob{{Name: "swap", Wanted: "0", Found: "0", Enforced: true}}, Noise: []bench.Noise{{When: "before", Spin: 0.02, Memory: 0.5}},
	}}
	add := func(task, who string, outcome bench.Outcome, score float64, cause string, wall int64) {
		d.Results = append(d.Results, bench.Result{Version: 1, Attempt: task + "." + who + ".1", Task: task, Agent: who, Seed: 1, Tries: 1, Outcome: outcome, Score: score, Cause: cause,
			Metrics: bench.Metrics{WallMS: wall, MemoryPeak: number(wall << 18), Denials: 1}})
	}
	add("easy", "good", bench.Passed, 1, "", 10)
	add("hard", "good", bench.Passed, 0.75, "grader: score 0.75", 40)
	add("easy", "bad", bench.Failed, 0, "oom; "+hostile, 5)
	add("hard", "bad", bench.Infrastructure, 0, "start failed: rootfs: failed", 0)
	dir := filepath.Join(d.Dir, bench.AttemptsDir, "easy.bad.1", "output")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stderr"), []byte(strings.Repeat("x", tailMost)+"the end "+hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

func htmlOf(t *testing.T, d Data) string {
	t.Helper()
	page, err := HTML(d)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestGoldens(t *testing.T) {
	t.Parallel()
	d := sample(t)
	csv, err := CSV(d)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"report.md": Markdown(d), "report.xml": JUnit(d), "report.html": htmlOf(t, d), "report.csv": csv} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != got {
			t.Errorf("%s differs (go test ./bench/report -update): %v\n%s", name, err, got)
		}
	}
}

// No text of an agent's becomes markup, and XML stays well formed.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	d := sample(t)
	for name, text := range map[string]string{"markdown": Markdown(d), "html": htmlOf(t, d), "junit": JUnit(d)} {
		if strings.Contains(text, "<script") || strings.ContainsAny(text, "\x1b\x00") {
			t.Errorf("%s passes markup or control characters on", name)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(JUnit(d))); ; {
		_, err := decoder.Token()
		if err != nil {
			if err.Error() != "EOF" {
				t.Error(err)
			}
			break
		}
	}
	if harmless("=1+1") != "'=1+1" || harmless("-5") != "-5" || harmless("@x") != "'@x" {
		t.Error("a formula reaches a spreadsheet")
	}
	// The name of an attempt that leads out of the folder finds nothing.
	if tail := d.tail(bench.Result{Attempt: "../../../../etc"}); tail != "" {
		t.Error(tail)
	}
}

// What failed for the infrastructure is in no rate.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, r := range sample(t).Agents() {
		if r.Agent == "bad" && (r.Graded != 1 || r.Passed != 0 || r.Infrastructure != 1) || r.Agent == "good" && r.Mean() != 0.875 {
			t.Errorf("%+v", r)
		}
	}
}
