package build

import (
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

func TestWritablePlacesOfARequest(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		asked  Request
		passes bool
	}{
		"none":          {Request{ReadOnly: true}, true},
		"two":           {Request{ReadOnly: true, Writable: []string{"/tmp", "/dev/shm"}}, true},
		"an empty list": {Request{ReadOnly: true, Writable: []string{}}, false},
		"unknown":       {Request{ReadOnly: true, Writable: []string{"/etc"}}, false},
		"no read-only":  {Request{Writable: []string{"/tmp"}}, false},
	} {
		row.asked.Args = []string{"true"}
		for what, build := range map[string]func() (agent.Spec, error){
			"a run":    func() (agent.Spec, error) { return Spec(row.asked, host.Host{}, "0123456789abcdef") },
			"an image": func() (agent.Spec, error) { return ImageSpec(row.asked, host.Host{}) },
		} {
			spec, err := build()
			if (err == nil) != row.passes || err == nil && !slices.Equal(spec.Files.Writable, row.asked.Writable) ||
				err != nil && agent.FailureOf(err).Step != "files.writable" {
				t.Errorf("%s of %s: %v, %q", name, what, err, spec.Files.Writable)
			}
		}
	}
}
