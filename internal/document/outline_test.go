package document

import (
	"slices"
	"testing"
)

func TestOutline(t *testing.T) {
	t.Parallel()
	o, err := OutlineOf([]byte(`{"version": 1, "mcpServers": {"x": [{"command": "sh"}]}, "list": [1, 2]}`))
	if err != nil || !slices.Equal(o.Keys, []string{"version", "mcpServers", "x", "command", "list"}) || o.Top["version"] != "1" || len(o.Top) != 3 {
		t.Errorf("%+v, %v", o, err)
	}
	// An alias of itself and a bomb of aliases end.
	if o, err := OutlineOf([]byte("a: &a [1, *a]\nb: [*a, *a]\n")); err != nil || len(o.Keys) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, text := range []string{"", "{", "a: b: c"} {
		if _, err := OutlineOf([]byte(text)); err == nil {
			t.Errorf("%q has an outline", text)
		}
	}
}

// Values that Decode would read count, however they are written.
func TestOutlineClaims(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"version: 1\nname: web\n":                       true,
		`{version: 1, name: web}`:                       true,
		`{"\u0076ersion": 1, "na\u006de": "web"}`:       true,
		"? version\n: 0x1\nname: web\n":                 true,
		"version: 2\nname: web\n":                       false,
		"version: 1.2.3\nname: web\n":                   false,
		"version: 1\n":                                  false,
		"services: {a: {version: 1, name: b}}\nname: x": false,
		"- version: 1\n- name: web\n":                   false,
		"text":                                          false,
	} {
		o, err := OutlineOf([]byte(text))
		if err != nil || o.Claims("name") != want {
			t.Errorf("%q: %t, %v", text, o.Claims("name"), err)
		}
	}
}
