package runtime

import (
	"errors"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
)

// readable are the real paths of a run's list of what may be read.
func readable(spec agent.Spec, plan rootfs.Plan) ([]string, error) {
	if spec.Files.Read == nil {
		return nil, nil
	}
	paths, err := plan.Readable(spec.Files.Read, spec.Files.OwnPlaces())
	if list := (*rootfs.ListError)(nil); errors.As(err, &list) {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "--allow-read", Message: list.Error(), Hint: list.Hint}
	}
	if err == nil && (spec.Restart.Policy.Restarts() || spec.KeepFiles) {
		err = stays(plan, paths, "name the place as a whole, or keep no files from one start to the next")
	}
	return paths, err
}

// stays refuses what the agent could have put something else in the place of.
func stays(plan rootfs.Plan, paths []string, hint string) error {
	for _, at := range paths {
		if place := plan.Changing(at); place != "" {
			return &agent.Error{Kind: agent.KindInvalid, Step: "--allow-read", Hint: hint,
				Message: fmt.Sprintf("the agent changes what is in %s, and could put something else at %s for its next start", place, at)}
		}
	}
	return nil
}

// checkKept is stays for a run that goes on with the files of an earlier start.
func (l *launch) checkKept() error {
	if l.run.Layer == "" {
		return nil
	}
	return stays(l.plan, l.readable, "`clove restart --fresh` begins with a new layer; what the agent wrote is lost then")
}
