package resolve

import (
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

func TestWritablePlacesOfARequest(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		asked  Request
		passes bool
	}{
		"none":          {Request{Values: settings.Values{settings.Root: {settings.RootReadOnly}}}, true},
		"two":           {Request{Values: settings.Values{settings.Root: {settings.RootReadOnly}, settings.Writable: {"/tmp", "/dev/shm"}}}, true},
		"an empty list": {Request{Values: settings.Values{settings.Root: {settings.RootReadOnly}, settings.Writable: {}}}, false},
		"unknown":       {Request{Values: settings.Values{settings.Root: {settings.RootReadOnly}, settings.Writable: {"/etc"}}}, false},
		"no read-only":  {Request{Values: settings.Values{settings.Writable: {"/tmp"}}}, false},
	} {
		row.asked.Args = []string{"true"}
		for what, build := range map[string]func() (agent.Spec, error){
			"a run":    func() (agent.Spec, error) { return Spec(row.asked, host.Host{}, "0123456789abcdef") },
			"an image": func() (agent.Spec, error) { return ImageSpec(row.asked, host.Host{}) },
		} {
			spec, err := build()
			if (err == nil) != row.passes || err == nil && !slices.Equal(spec.Files.Writable, row.asked.Values[settings.Writable]) ||
				err != nil && agent.FailureOf(err).Step != "files.writable" {
				t.Errorf("%s of %s: %v, %q", name, what, err, spec.Files.Writable)
			}
		}
	}
}
