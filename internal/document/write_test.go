package document

import "testing"

// Comments are where they belong, and nothing in one or in a text adds a key.
func TestYAML(t *testing.T) {
	t.Parallel()
	got := string(YAML([]Node{
		{Above: []string{"first", "a\nb: c"}, Key: "version", Text: "1", Note: "x\u2028y"},
		{Key: "files", Note: "of the host", Nodes: []Node{
			{Key: "writable", Nodes: Items([]string{"/tmp", "a\nuser: root"}, func(text string) string { return map[string]string{"/tmp": "written"}[text] })},
			{Above: []string{"last"}},
		}},
	}))
	const want = `# first
# a?b: c
version: 1 # x?y
files: # of the host
  writable:
    - "/tmp" # written
    - "a\nuser: root"
  # last
`
	if got != want {
		t.Errorf("\n%s", got)
	}
	var back struct {
		Version int `json:"version"`
		Files   struct {
			Writable []string `json:"writable"`
		} `json:"files"`
	}
	if err := Decode([]byte(got), &back); err != nil || back.Version != 1 || len(back.Files.Writable) != 2 || back.Files.Writable[1] != "a\nuser: root" {
		t.Errorf("%v, %+v", err, back)
	}
}
