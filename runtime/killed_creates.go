package runtime

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/internal/creates"
)

// killedCreates are the cgroups of OCI containers whose create was killed before its engine
// could see them. They are reported and never removed here: the container's id is in use until
// the engine deletes it.
func (r *Runtime) killedCreates() (found []Problem, err error) {
	notes, err := creates.Abandoned(filepath.Join(r.paths.Run, creates.Name))
	if err != nil {
		return nil, agent.Failed("list OCI containers", err)
	}
	for _, n := range notes {
		left := slices.Sorted(maps.Values(n.Paths))
		left = slices.Compact(slices.DeleteFunc(left, func(path string) bool { return !exists(path) }))
		// With libcontainer's file the create had got so far that engines list the container.
		if len(left) == 0 || exists(filepath.Join(n.Directory, "state.json")) {
			continue
		}
		root, id := filepath.Split(n.Directory)
		message := fmt.Sprintf("the create of this OCI container was killed: clove-oci --root %s delete --force %s removes it", filepath.Clean(root), id)
		if more := len(left) - 1; more > 0 {
			message += fmt.Sprintf(", and its cgroups in %d other hierarchies", more)
		}
		found = append(found, Problem{Kind: ProblemCreate, Subject: left[0], Message: message})
	}
	return found, nil
}
