//go:build root

package report

import (
	_ "embed"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// measureJS returns what a browser has made of the page, as measured below.
//
//go:embed testdata/measure.js
var measureJS string

type measured struct {
	Wide     []string `json:"wide"`     // what is wider than the window
	Faint    []string `json:"faint"`    // text with less contrast than 4.5 to 1 (WCAG 2.2, 1.4.3)
	Small    []string `json:"small"`    // text below 12 pixels
	Texts    int      `json:"texts"`    // pieces of text that were looked at
	Drawings int      `json:"drawings"` // charts with at least one visible mark
	Empty    int      `json:"empty"`    // charts without one
	Cells    int      `json:"cells"`    // of the heat map, coloured
	Paper    string   `json:"paper"`    // the background
}

// views are a telephone and a desk, by day and by night.
var views = []view{{375, "light"}, {375, "dark"}, {1280, "light"}, {1280, "dark"}}

// The page in Chromium: nothing is wider than the window, every text can be read, each chart
// has marks, nothing is loaded, and no script of what agents wrote runs.
func TestThePageInABrowser(t *testing.T) {
	b := openBrowser(t)
	path := writePage(t, htmlOf(t, sample(t)))
	papers := map[string]string{}
	for _, v := range views {
		m := b.look(v, path)
		if len(m.Wide)+len(m.Faint)+len(m.Small) > 0 {
			t.Errorf("%+v: too wide: %q\ntoo faint: %q\ntoo small: %q", v, m.Wide, m.Faint, m.Small)
		}
		if m.Texts < 50 || m.Drawings != 6 || m.Empty != 0 || m.Cells != 3 {
			t.Errorf("%+v: %d texts, %d charts, %d empty ones, %d cells", v, m.Texts, m.Drawings, m.Empty, m.Cells)
		}
		papers[v.scheme] = m.Paper
	}
	if len(b.said) > 0 {
		t.Errorf("the browser says: %q", b.said)
	}
	if papers["light"] == papers["dark"] {
		t.Errorf("day and night have the same background, %s", papers["light"])
	}
}

// The control: each defect is seen.
func TestTheBrowserSeesDefects(t *testing.T) {
	b := openBrowser(t)
	page := htmlOf(t, sample(t))
	for name, row := range map[string]struct {
		from, to string
		seen     func(measured) bool
	}{
		"wide":  {"</body>", `<div style="width:3000px">wide</div></body>`, func(m measured) bool { return len(m.Wide) > 0 }},
		"faint": {"--faint: #667;", "--faint: #ccc;", func(m measured) bool { return len(m.Faint) > 0 }},
		"small": {"</body>", `<p style="font-size:6px">small</p></body>`, func(m measured) bool { return len(m.Small) > 0 }},
		"empty": {"</body>", `<svg></svg></body>`, func(m measured) bool { return m.Empty == 1 }},
		"script": {"</body>", `<script>alert(1)</script></body>`, func(measured) bool {
			return slices.ContainsFunc(b.said, func(s string) bool { return strings.Contains(s, "Content Security Policy") })
		}},
		"loads": {"</body>", `<img src="other.png"></body>`, func(measured) bool { return len(b.said) > 0 }},
		"runs": {"default-src 'none';", "script-src 'unsafe-inline'; \"><script>console.error('it runs')</script><meta content=\"", func(measured) bool {
			return slices.ContainsFunc(b.said, func(s string) bool { return strings.Contains(s, "it runs") })
		}},
	} {
		b.said = nil
		if m := b.look(views[0], writePage(t, strings.Replace(page, row.from, row.to, 1))); !row.seen(m) {
			t.Errorf("%s is not seen: %+v, %q", name, m, b.said)
		}
	}
}

func writePage(t *testing.T, page string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

type view struct {
	width  int
	scheme string
}

// look shows a file and measures it.
func (b *browser) look(v view, path string) (m measured) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": v.width, "height": 800, "deviceScaleFactor": 1, "mobile": v.width < 600})
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": v.scheme}}})
	b.show((&url.URL{Scheme: "file", Path: path}).String())
	answer := b.call("Runtime.evaluate", map[string]any{"expression": measureJS, "returnByValue": true})
	var found struct {
		Result struct {
			Value string `json:"value"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(found.Result.Value), &m); err != nil {
		b.t.Fatalf("%v: %s", err, answer)
	}
	return m
}

// openBrowser starts Chromium without a window. It ends with the test.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	testhost.Root(t)
	path := testhost.Tool(t, "chromium")
	return startBrowser(t, path)
}
