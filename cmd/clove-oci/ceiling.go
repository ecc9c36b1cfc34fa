package main

import (
	"errors"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
	"clove.run/clove/policies/resolve"
)

// checkCeiling refuses annotations that ask for more than the ceiling of the host in dir. The
// engine, which has limits of its own, decides all that no annotation names; a bundle without
// annotations is not held against the ceiling, and costs nothing.
func checkCeiling(rules oci.Rules, dir string) error {
	spec, all := rules.Asked()
	for _, asked := range all {
		err := resolve.CheckCeiling(spec, dir, asked.Places...)
		var known *agent.Error
		if errors.As(err, &known) && known.Kind == agent.KindPrivilege {
			return &agent.Error{Kind: agent.KindPrivilege, Step: "annotation " + asked.Annotation, Message: known.Message,
				Hint: "ask for less; root's " + resolve.CeilingFile(dir) + " is the ceiling of what annotations ask, too"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
