package report

import (
	"embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"clove.run/clove/bench"
	"clove.run/clove/bench/stats"
)

//go:embed page.html page.css
var page embed.FS

// HTML is one page that needs nothing else: no script, and nothing that is loaded. Texts are
// not a part of the drawings, so that they keep their size on a telephone.
func HTML(d Data) (string, error) {
	var b strings.Builder
	// Parsed here: most commands write no report.
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"bars": d.bars, "heat": d.heat, "strips": d.strips, "medians": d.medians, "failed": d.failed, "tail": d.tail, "verdict": d.verdict,
		"cut": cut, "onOff": onOff, "percent": percent, "yesNo": yesNo,
		"most":  func() int { return failuresMost },
		"more":  func(failed []bench.Result) int { return len(failed) - failuresMost },
		"share": func(of, whole float64) string { return fmt.Sprintf("%.2f", whole*of) },
	}).ParseFS(page, "page.html", "page.css")
	if err == nil {
		err = t.Execute(&b, d)
	}
	return printable(b.String()), err
}

// bar is the rate of an agent, with its interval.
type bar struct {
	Agent, Text             string
	Share, Low, High, Width float64
}

func (d Data) bars() (bars []bar) {
	for _, r := range d.Agents() {
		share, i := rate(r), stats.Wilson(r.Passed, r.Graded)
		text := fmt.Sprintf("%d of %d, %s", r.Passed, r.Graded, percent(share))
		if r.Infrastructure > 0 {
			text += fmt.Sprintf(", %d without a result", r.Infrastructure)
		}
		if math.IsNaN(share) {
			share = 0
		}
		bars = append(bars, bar{r.Agent, text, share, i.Low, i.High, i.High - i.Low})
	}
	return bars
}

// heat is the mean score of each agent at each task.
type heat struct {
	Agents []string
	Tasks  []struct {
		Name  string
		Cells []*Rate // in the order of Agents
	}
}

func (d Data) heat() (h heat) {
	var tasks []string
	at := map[[2]string]*Rate{}
	for _, c := range d.Cells() {
		h.Agents, tasks = append(h.Agents, c.Agent), append(tasks, c.Task)
		at[[2]string{c.Task, c.Agent}] = &c
	}
	slices.Sort(h.Agents)
	h.Agents = slices.Compact(h.Agents)
	for _, task := range slices.Compact(tasks) { // Cells are in the order of tasks
		row := struct {
			Name  string
			Cells []*Rate
		}{Name: task}
		for _, agent := range h.Agents {
			cell := at[[2]string{task, agent}]
			if cell == nil {
				cell = &Rate{}
			}
			row.Cells = append(row.Cells, cell)
		}
		h.Tasks = append(h.Tasks, row)
	}
	return h
}

// strips have a tick for a figure of each attempt, and the median. The scale is one for all
// agents.
type strips struct {
	Title, Most string
	Rows        []strip
}

type strip struct {
	Agent, Middle, High string
	Ticks               []float64 // shares of Most
	At                  float64   // the median's
}

func (d Data) strips() (all []strips) {
	for _, s := range []struct {
		title string
		of    figure
		text  func(float64) string
	}{{"Wall time", wall, clock}, {"Peak memory", peak, bytesText}} {
		most := 0.0
		for _, r := range d.Agents() {
			most = max(most, slices.Max(append(d.values(r.Agent, s.of), 0)))
		}
		if most == 0 {
			continue
		}
		one := strips{Title: s.title, Most: s.text(most)}
		for _, r := range d.Agents() {
			values := d.values(r.Agent, s.of)
			middle, high := stats.Quantile(0.5, values), stats.Quantile(0.95, values)
			row := strip{Agent: r.Agent, Middle: s.text(middle), High: s.text(high), At: middle / most}
			for _, v := range values {
				row.Ticks = append(row.Ticks, v/most)
			}
			one.Rows = append(one.Rows, row)
		}
		all = append(all, one)
	}
	return all
}
