package homedir

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// fill makes files below a new directory; a text of "->X" makes a link to X.
func fill(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if len(text) > 2 && text[:2] == "->" {
			err = os.Symlink(text[2:], at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		folder string // its name in the home
		files  map[string]string
		want   []string
	}{
		"cargo":                     {".cargo", map[string]string{"credentials.toml": "", "bin/cargo": "", "registry/x": ""}, []string{"credentials.toml"}},
		"cargo without a login":     {".cargo", map[string]string{"bin/cargo": "", "config.toml": "[net]\ngit-fetch-with-cli = true\n"}, nil},
		"a token in a config":       {".cargo", map[string]string{"config.toml": "[registries.own]\ntoken = \"abc\"\n"}, []string{"config.toml"}},
		"npm's token":               {"x", map[string]string{".npmrc": "registry=https://r\n//r/:_authToken=abc\n"}, []string{".npmrc"}},
		"npm's token of a variable": {"x", map[string]string{".npmrc": "//r/:_authToken=${NPM_TOKEN}\nalways-auth=true\n"}, nil},
		"a password in an address":  {"x", map[string]string{"pip.conf": "index-url = https://u:p@r/simple\n"}, []string{"pip.conf"}},
		"right below":               {".local", map[string]string{"a/.netrc": ""}, []string{"a/.netrc"}},
		"a known place":             {".config", map[string]string{"gh/hosts.yml": "", "gcloud/a/b": ""}, []string{"gcloud", "gh/hosts.yml"}},
		"the place itself":          {".ssh", nil, []string{"."}},
		"below a place":             {".ssh/keys", nil, []string{"."}},
		"beside a place":            {".sshd", map[string]string{"x": ""}, nil},
		"deep in a cache":           {".cache/uv", map[string]string{"a/b/credentials.json": "", "archive/f": ""}, nil},
		"a link is its name":        {".cargo", map[string]string{"credentials.toml": "->/nowhere"}, []string{"credentials.toml"}},
		"a link's text":             {"x", map[string]string{".npmrc": "->/etc/passwd"}, nil},
	} {
		found, err := Secrets(fill(t, c.files), c.folder)
		if err != nil || !reflect.DeepEqual(found, c.want) {
			t.Errorf("%s: %q, %v", name, found, err)
		}
	}
	if err := Check(fill(t, map[string]string{".netrc": ""}), "x"); !errors.Is(err, ErrSecrets) {
		t.Error(err)
	}
	if err := Check("/nowhere", "x"); err == nil || errors.Is(err, ErrSecrets) {
		t.Error(err)
	}
}
