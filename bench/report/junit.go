package report

import (
	"fmt"
	"strings"

	"clove.run/clove/bench"
)

// JUnit has a test suite for each agent and a test case for each attempt. One that failed for
// the infrastructure is an error, as CI systems call it, and not a failure.
func JUnit(d Data) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	fmt.Fprintf(&b, "<testsuites name=\"%s\">\n", escape(d.Manifest.Suite.Name))
	for _, rate := range d.Agents() {
		fmt.Fprintf(&b, "  <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\" errors=\"%d\">\n", escape(rate.Agent),
			rate.Graded+rate.Infrastructure, rate.Graded-rate.Passed, rate.Infrastructure)
		for _, r := range d.Results {
			if r.Agent == rate.Agent {
				testCase(&b, d, r)
			}
		}
		b.WriteString("  </testsuite>\n")
	}
	b.WriteString("</testsuites>\n")
	return b.String()
}

func testCase(b *strings.Builder, d Data, r bench.Result) {
	fmt.Fprintf(b, "    <testcase classname=\"%s.%s\" name=\"%s seed %d\" time=\"%.3f\"", escape(d.Manifest.Suite.Name), escape(r.Agent), escape(r.Task), r.Seed,
		float64(r.Metrics.WallMS)/1000)
	if r.Outcome == bench.Passed {
		b.WriteString("/>\n")
		return
	}
	element := "failure"
	if r.Outcome == bench.Infrastructure {
		element = "error"
	}
	fmt.Fprintf(b, ">\n      <%s message=\"%s\">%s</%s>\n    </testcase>\n", element, escape(r.Cause), escape(d.tail(r)), element)
}

// escape is for XML, in elements and attributes.
func escape(text string) string {
	return strings.NewReplacer("<", "&#60;", ">", "&#62;", "&", "&#38;", `"`, "&#34;", "'", "&#39;").Replace(printable(text))
}

// printable replaces what a reader of XML or HTML may not take: XML 1.0 has no way to write most
// control characters.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0xfffe || c == 0xffff {
			return '�'
		}
		return c
	}, strings.ToValidUTF8(text, "�"))
}
