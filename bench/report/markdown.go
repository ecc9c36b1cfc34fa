package report

import (
	"fmt"
	"strings"

	"clove.run/clove/bench"
	"clove.run/clove/bench/stats"
)

// Markdown is the report as text.
func Markdown(d Data) string {
	var b strings.Builder
	m := d.Manifest
	fmt.Fprintf(&b, "# %s %s\n\n", cell(m.Suite.Name), cell(m.Suite.Version))
	if text := d.verdict(); text != "" {
		fmt.Fprintf(&b, "**%s**\n\n", cell(text))
	}
	fmt.Fprintf(&b, "%d of %d attempts, begun %s on %s (%d processors, kernel %s, cgroup %s).\n", len(d.Results), m.Attempts,
		m.Began.UTC().Format("2006-01-02 15:04 MST"), cell(m.Host.Processor), m.Host.CPUs, cell(m.Host.Kernel), m.Host.Cgroup)
	if m.Ended.IsZero() {
		b.WriteString("**The bench was interrupted:** `clove bench run --resume` makes the attempts that are left.\n")
	}
	fmt.Fprintf(&b, "Suite `%s`. Parity %s.\n\n", m.Suite.SHA256, onOff(m.Parity))
	agentTable(&b, d)
	mediansTable(&b, d)
	taskTable(&b, d)
	failures(&b, d)
	conditions(&b, m)
	return b.String()
}

func agentTable(b *strings.Builder, d Data) {
	b.WriteString("## Agents\n\n| agent | passed | rate | 95 % interval (Wilson) | mean score | median time | median peak memory | infrastructure |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range d.Agents() {
		i := stats.Wilson(r.Passed, r.Graded)
		fmt.Fprintf(b, "| %s | %d of %d | %s | %s to %s | %.2f | %s | %s | %d |\n", cell(r.Agent), r.Passed, r.Graded, percent(rate(r)), percent(i.Low), percent(i.High),
			r.Mean(), clock(stats.Quantile(0.5, d.values(r.Agent, wall))), bytesText(stats.Quantile(0.5, d.values(r.Agent, peak))), r.Infrastructure)
	}
	b.WriteString("\n")
}

func mediansTable(b *strings.Builder, d Data) {
	b.WriteString("## Medians of an attempt\n\n")
	for i, row := range d.medians() {
		for _, text := range row {
			b.WriteString("| " + cell(text) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	b.WriteString("\n")
}

func taskTable(b *strings.Builder, d Data) {
	b.WriteString("## Tasks\n\n| task | agent | passed | mean score |\n|---|---|---|---|\n")
	for _, r := range d.Cells() {
		fmt.Fprintf(b, "| %s | %s | %d of %d | %.2f |\n", cell(r.Task), cell(r.Agent), r.Passed, r.Graded, r.Mean())
	}
	b.WriteString("\n")
}

// failuresMost bounds the list of a report; results.jsonl has all.
const failuresMost = 100

// failed are the attempts that did not pass.
func (d Data) failed() (failed []bench.Result) {
	for _, r := range d.Results {
		if r.Outcome != bench.Passed {
			failed = append(failed, r)
		}
	}
	return failed
}

func failures(b *strings.Builder, d Data) {
	failed := d.failed()
	if len(failed) == 0 {
		return
	}
	fmt.Fprintf(b, "## Not passed: %d\n\n| attempt | outcome | cause |\n|---|---|---|\n", len(failed))
	for _, r := range failed[:min(len(failed), failuresMost)] {
		fmt.Fprintf(b, "| %s | %s | %s |\n", cell(r.Attempt), r.Outcome, cell(r.Cause))
	}
	if more := len(failed) - failuresMost; more > 0 {
		fmt.Fprintf(b, "\n%d more are in %s.\n", more, bench.ResultsFile)
	}
	b.WriteString("\n")
}

func conditions(b *strings.Builder, m bench.Manifest) {
	if len(m.Enforced) > 0 {
		b.WriteString("## Conditions\n\n| condition | wanted | found inside | enforced |\n|---|---|---|---|\n")
		for _, k := range m.Enforced {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", cell(k.Name), cell(k.Wanted), cell(k.Found), yesNo(k.Enforced))
		}
		b.WriteString("\n")
	}
	b.WriteString("## Machine\n\n| setting | value | quiet |\n|---|---|---|\n")
	for _, f := range m.Host.Findings {
		fmt.Fprintf(b, "| %s | %s | %s |\n", cell(f.Name), cell(f.Value), yesNo(f.Quiet))
	}
	b.WriteString("\n| noise | of the processor | of memory |\n|---|---|---|\n")
	for _, n := range m.Noise {
		fmt.Fprintf(b, "| %s | %s | %s |\n", n.When, percent(n.Spin), percent(n.Memory))
	}
}
