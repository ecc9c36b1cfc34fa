package agent

import "testing"

// Texts that are a command, a webhook, and neither.
func TestCallouts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ url, refused bool }{
		"":                                {},
		"logger -t clove":                 {},
		"curl -d @- https://a.example/":   {},
		"/opt/a://b":                      {},
		"://":                             {},
		"https://a.example/hook?k=v":      {url: true},
		"HTTP://127.0.0.1:8080":           {url: true},
		"http://[::1]:80/x":               {url: true},
		"ftp://a.example":                 {url: true, refused: true},
		"file:///etc/passwd":              {url: true, refused: true},
		"http://":                         {url: true, refused: true},
		"http://:80/":                     {url: true, refused: true},
		"https://user:secret@a.example/":  {url: true, refused: true},
		"https://a.example/#x":            {url: true, refused: true},
		"https://a.example:port/":         {url: true, refused: true},
		"echo one\necho two":              {refused: true},
		"\x1b[2J":                         {refused: true},
		string(make([]byte, calloutMost)): {refused: true},
	} {
		if err := ValidateCallout("kernel.on_warn", text); IsURL(text) != want.url || (err != nil) != want.refused {
			t.Errorf("%.40q: URL %t, %v", text, IsURL(text), err)
		}
	}
}
