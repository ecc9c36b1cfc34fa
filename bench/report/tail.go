package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"clove.run/clove/bench"
)

// tailMost bounds what a report shows of each log.
const tailMost = 2 << 10

// logs are the files of an attempt whose ends explain a failure.
var logs = []string{"grader.log", "output/stderr", "output/stdout"}

// tail is the end of each log of an attempt.
func (d Data) tail(r bench.Result) string {
	if !filepath.IsLocal(r.Attempt) {
		return ""
	}
	root, err := os.OpenRoot(d.Dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	var b strings.Builder
	for _, name := range logs {
		if text := end(root, filepath.Join(bench.AttemptsDir, r.Attempt, name)); text != "" {
			fmt.Fprintf(&b, "%s:\n%s\n", name, strings.TrimRight(text, "\n"))
		}
	}
	return b.String()
}

// end returns the last bytes of a file; of one that is gone, nothing.
func end(root *os.Root, name string) string {
	file, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text := make([]byte, min(info.Size(), tailMost))
	if _, err := file.ReadAt(text, info.Size()-int64(len(text))); err != nil && err != io.EOF {
		return ""
	}
	if info.Size() > tailMost {
		return "…" + strings.ToValidUTF8(string(text), "")
	}
	return string(text)
}
