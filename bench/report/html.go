package report

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"clove.run/clove/bench"
	"clove.run/clove/bench/stats"
)

//go:embed page.css
var pageCSS string

// HTML is one page that needs nothing else: no script, and nothing that is loaded. Texts are
// not a part of the drawings, so that they keep their size on a telephone.
func HTML(d Data) string {
	var b strings.Builder
	m := d.Manifest
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><title>%s %s</title><style>
%s</style></head><body>
<h1>%s <small>%s</small></h1>
<p class="faint">%d of %d attempts, begun %s on %s, %d processors, kernel %s, cgroup %s. Parity %s.</p>
`, escape(m.Suite.Name), escape(m.Suite.Version), pageCSS, escape(m.Suite.Name), escape(m.Suite.Version), len(d.Results), m.Attempts,
		m.Began.UTC().Format("2006-01-02 15:04 MST"), escape(m.Host.Processor), m.Host.CPUs, escape(m.Host.Kernel), escape(m.Host.Cgroup), onOff(m.Parity))
	if m.Ended.IsZero() {
		b.WriteString("<p class=\"warn\">The bench was interrupted: some attempts are missing.</p>\n")
	}
	d.drawRates(&b)
	d.drawHeat(&b)
	d.drawStrips(&b, "Wall time", wall, clock)
	d.drawStrips(&b, "Peak memory", peak, bytesText)
	d.drawMedians(&b)
	d.drawFailures(&b)
	drawConditions(&b, m)
	b.WriteString("</body></html>\n")
	return b.String()
}

// drawRates shows the rate of each agent as a bar, with its interval as a line over it.
func (d Data) drawRates(b *strings.Builder) {
	b.WriteString("<h2>Success, with 95 % intervals (Wilson)</h2>\n<div class=\"rows\">\n")
	for _, r := range d.Agents() {
		share, i := rate(r), stats.Wilson(r.Passed, r.Graded)
		text := fmt.Sprintf("%d of %d, %s", r.Passed, r.Graded, percent(share))
		if r.Infrastructure > 0 {
			text += fmt.Sprintf(", %d without a result", r.Infrastructure)
		}
		if math.IsNaN(share) {
			share = 0
		}
		fmt.Fprintf(b, `<span>%s</span><svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="%s"><rect class="back" width="100" height="10"/><rect class="bar" width="%.2f" height="10"/>`+
			`<rect class="whisker" x="%.2f" y="4.4" width="%.2f" height="1.2"/></svg><span>%s<br><small>%s to %s</small></span>`+"\n",
			escape(r.Agent), escape(r.Agent+": "+text), 100*share, 100*i.Low, 100*(i.High-i.Low), text, percent(i.Low), percent(i.High))
	}
	b.WriteString("</div>\n")
}

// drawHeat shows the mean score of each agent at each task.
func (d Data) drawHeat(b *strings.Builder) {
	cells := d.Cells()
	var agents, tasks []string
	at := map[[2]string]Rate{}
	for _, c := range cells {
		if !slices.Contains(agents, c.Agent) {
			agents = append(agents, c.Agent)
		}
		if !slices.Contains(tasks, c.Task) {
			tasks = append(tasks, c.Task)
		}
		at[[2]string{c.Task, c.Agent}] = c
	}
	slices.Sort(agents)
	b.WriteString("<h2>Mean score by task and agent</h2>\n<div class=\"scroll\"><table class=\"heat\"><tr><th></th>")
	for _, a := range agents {
		fmt.Fprintf(b, "<th>%s</th>", escape(a))
	}
	b.WriteString("</tr>\n")
	for _, t := range tasks {
		fmt.Fprintf(b, "<tr><th>%s</th>", escape(t))
		for _, a := range agents {
			if c := at[[2]string{t, a}]; c.Graded > 0 {
				fmt.Fprintf(b, `<td class="cell" style="--share:%.3f">%.2f</td>`, c.Mean(), c.Mean())
			} else {
				b.WriteString(`<td class="faint">-</td>`)
			}
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
}

// drawStrips shows a figure of each attempt as a tick, and the median. The scale is one for all
// agents.
func (d Data) drawStrips(b *strings.Builder, title string, of figure, text func(float64) string) {
	most := 0.0
	for _, r := range d.Agents() {
		most = max(most, slices.Max(append(d.values(r.Agent, of), 0)))
	}
	if most == 0 {
		return
	}
	fmt.Fprintf(b, "<h2>%s</h2>\n<p class=\"faint\">0 to %s; a tick for each attempt, the long one is the median.</p>\n<div class=\"rows\">\n", title, text(most))
	for _, r := range d.Agents() {
		values := d.values(r.Agent, of)
		middle, high := stats.Quantile(0.5, values), stats.Quantile(0.95, values)
		fmt.Fprintf(b, `<span>%s</span><svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="%s: median %s"><rect class="back" y="9.4" width="100" height=".6"/>`,
			escape(r.Agent), escape(r.Agent), text(middle))
		for _, v := range values {
			fmt.Fprintf(b, `<rect class="tick" x="%.2f" y="3" width=".5" height="6"/>`, 99.5*v/most)
		}
		if len(values) > 0 {
			fmt.Fprintf(b, `<rect class="mid" x="%.2f" width=".5" height="10"/>`, 99.5*middle/most)
		}
		fmt.Fprintf(b, "</svg><span>%s<br><small>95 %% below %s</small></span>\n", text(middle), text(high))
	}
	b.WriteString("</div>\n")
}

func (d Data) drawMedians(b *strings.Builder) {
	b.WriteString("<h2>Medians of an attempt</h2>\n<div class=\"scroll\"><table>\n")
	for i, row := range d.medians() {
		tag := "td"
		if i == 0 {
			tag = "th"
		}
		b.WriteString("<tr>")
		for _, text := range row {
			fmt.Fprintf(b, "<%s>%s</%s>", tag, escape(text), tag)
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table></div>\n")
}

// drawFailures shows what did not pass, with the ends of its logs.
func (d Data) drawFailures(b *strings.Builder) {
	var failed []bench.Result
	for _, r := range d.Results {
		if r.Outcome != bench.Passed {
			failed = append(failed, r)
		}
	}
	fmt.Fprintf(b, "<h2>Not passed: %d</h2>\n", len(failed))
	for _, r := range failed[:min(len(failed), failuresMost)] {
		fmt.Fprintf(b, "<details><summary>%s: %s%s</summary><pre>%s</pre></details>\n", escape(r.Attempt), r.Outcome, escape(because(r.Cause)), escape(d.tail(r)))
	}
	if more := len(failed) - failuresMost; more > 0 {
		fmt.Fprintf(b, "<p class=\"faint\">%d more are in %s.</p>\n", more, bench.ResultsFile)
	}
}

func because(cause string) string {
	if cause == "" {
		return ""
	}
	return " (" + cut(cause) + ")"
}

func drawConditions(b *strings.Builder, m bench.Manifest) {
	if len(m.Enforced) > 0 {
		b.WriteString("<h2>Conditions, as a probe found them in a sandbox</h2>\n<div class=\"scroll\"><table><tr><th>condition</th><th>wanted</th><th>found</th><th>enforced</th></tr>\n")
		for _, k := range m.Enforced {
			fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", escape(k.Name), escape(k.Wanted), escape(k.Found), yesNo(k.Enforced))
		}
		b.WriteString("</table></div>\n")
	}
	b.WriteString("<h2>Machine</h2>\n<div class=\"scroll\"><table><tr><th>setting</th><th>value</th><th>quiet</th></tr>\n")
	for _, f := range m.Host.Findings {
		fmt.Fprintf(b, "<tr><td>%s</td><td>%s</td><td>%s</td></tr>\n", escape(f.Name), escape(f.Value), yesNo(f.Quiet))
	}
	for _, n := range m.Noise {
		fmt.Fprintf(b, "<tr><td>noise %s</td><td>processor %s, memory %s</td><td></td></tr>\n", escape(n.When), percent(n.Spin), percent(n.Memory))
	}
	fmt.Fprintf(b, "</table></div>\n<p class=\"faint\">Suite %s</p>\n", escape(m.Suite.SHA256))
}
