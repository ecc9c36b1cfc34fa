package resolve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

func TestHomeDirs(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(top, "home")
	for _, dir := range []string{"home/.cargo/bin", "home/.local/bin", "home/.cache/uv", "home/.aws", "home/own", "outside"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": "../outside", "in": "own", "cloud": ".aws", "self": "."} {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for text, c := range map[string]struct {
		sources []string // in the home
		path    []string // in the agent's home
		refused string
	}{
		".cargo,.local/bin,.cache/uv": {[]string{".cargo", ".local/bin", ".cache/uv"}, []string{".cargo/bin", ".local/bin"}, ""},
		".cargo/,./.cargo":            {[]string{".cargo"}, []string{".cargo/bin"}, ""},
		"in":                          {[]string{"own"}, nil, ""},
		".aws:secrets":                {[]string{".aws"}, nil, ""},
		".aws":                        {nil, nil, "credentials"},
		"cloud":                       {nil, nil, "credentials"},
		"out":                         {nil, nil, "leads out of the home"},
		"self":                        {nil, nil, "leads out of the home"},
		"go":                          {nil, nil, "has no folder go"},
		"":                            {nil, nil, "not a folder"},
		".":                           {nil, nil, "not a folder"},
		"own/../../outside":           {nil, nil, "not a folder"},
		"/etc":                        {nil, nil, "not a folder"},
		"own:rw":                      {nil, nil, "not a folder"},
		".cargo,":                     {nil, nil, "not a folder"},
	} {
		b := &builder{host: host.Host{Environ: []string{"HOME=" + home}}, spec: agent.Spec{User: settings.AgentUser}}
		b.asked.Add(settings.HomeDir, text)
		err := read(settings.Files)(b)
		if err == nil {
			err = b.showHomeDirs()
		}
		var sources, path []string
		for _, bind := range b.spec.Files.Binds {
			sources = append(sources, strings.TrimPrefix(bind.Source, home+"/"))
			if !bind.ReadOnly || !bind.CopyOnWrite {
				t.Errorf("%s: %+v", text, bind)
			}
		}
		for _, at := range b.path {
			path = append(path, strings.TrimPrefix(at, settings.AgentUser.Home+"/"))
		}
		switch {
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%q: %v", text, err)
		case c.refused == "" && (err != nil || !slices.Equal(sources, c.sources) || !slices.Equal(path, c.path)):
			t.Errorf("%q: %q, %q, %v", text, sources, path, err)
		}
	}
	asked := Request{Args: []string{"true"}, PolicyShadow: "sandboxed"}
	asked.Add(settings.HomeDir, ".cargo")
	if spec, err := Spec(asked, host.Host{Environ: []string{"HOME=" + home}, CPUs: []int{0}, Dir: top}, agent.NewID()); err != nil || spec.Shadow.Files.Binds[0].Source != home+"/.cargo" {
		t.Errorf("shadow: %+v, %v", spec.Shadow, err)
	}
	for _, environ := range [][]string{nil, {"HOME=/"}, {"HOME=relative"}, {"HOME=/nowhere"}} {
		b := &builder{host: host.Host{Environ: environ}, spec: agent.Spec{User: settings.AgentUser}}
		b.asked.Add(settings.HomeDir, "x")
		if err := read(settings.Files)(b); err != nil {
			t.Error(err)
		}
		if err := b.showHomeDirs(); err == nil || !strings.Contains(err.Error(), "no home") {
			t.Errorf("%q: %v", environ, err)
		}
	}
}
