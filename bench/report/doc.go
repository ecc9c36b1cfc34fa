// Package report writes the results of a bench, from results.jsonl and manifest.json
// alone, as Markdown, JUnit XML, CSV, and one HTML page.
//
// Everything in results was chosen by agents or suites: each writer escapes it for its own
// format. No page loads anything from elsewhere.
package report
