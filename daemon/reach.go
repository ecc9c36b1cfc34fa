package daemon

import (
	"errors"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/egress"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/runtime"
)

// checkReach refuses network rules that are invalid, or that allow more than the
// configuration lets the agents of users reach. It is asked when a run is requested, for
// each new set of rules, and again before each start, because the configuration may be
// another by then.
func (u UserLimits) checkReach(spec agent.Spec, of principal) error {
	if err := runtime.CheckRules(spec, of.owner); err != nil {
		return err
	}
	ceiling := u.ceiling()
	if of.root() || len(ceiling) == 0 {
		return nil
	}
	for _, target := range reached(spec) {
		covered, err := ceiling.Covers(target)
		if err != nil {
			return err
		}
		if !covered {
			return api.Failure(api.CodeDenied, "ask for less, or ask root to add it to users.allow in cloved's configuration",
				"%.256s is outside of what the agents of users may reach: %.512s", target, ceiling)
		}
	}
	return nil
}

// reached are the targets that a run may reach: what its rules allow, what its mode
// does, and its own name servers.
func reached(spec agent.Spec) (targets []string) {
	if spec.Network == agent.NetworkPublic {
		targets = append(targets, "public:*")
	}
	for _, rule := range spec.Egress.Rules {
		// A denial only takes away.
		if !rule.Deny {
			targets = append(targets, rule.Target)
		}
	}
	for _, server := range spec.Egress.DNS {
		targets = append(targets, "udp://"+server.String())
	}
	return targets
}

// ceiling is Allow as targets; none: there is no ceiling.
func (u UserLimits) ceiling() egress.Ceiling {
	ceiling, _ := egress.NewCeiling(u.Allow) // it was checked
	return ceiling
}

// checkAllow puts the hint into the message: a mistake in the configuration is one line.
func (u UserLimits) checkAllow() error {
	_, err := egress.NewCeiling(u.Allow)
	var wrong *agent.Error
	if errors.As(err, &wrong) && wrong.Hint != "" {
		return errors.New(wrong.Message + " (" + wrong.Hint + ")")
	}
	return err
}

// checkCeiling holds a run against the ceiling of the host, root's runs too. It is asked where
// checkReach is, and reads the document each time: root may have changed it. With places only
// these count, as in resolve.CheckCeiling.
func (c Config) checkCeiling(spec agent.Spec, places ...string) error {
	err := resolve.CheckCeiling(spec, c.Policies, places...)
	var exceeds *agent.Error
	if errors.As(err, &exceeds) && exceeds.Kind == agent.KindPrivilege {
		return api.Failure(api.CodeDenied, exceeds.Hint, "%s", exceeds.Message).By("", api.RuleCeiling)
	}
	return err
}

// labelled is the spec with the policies, its own and its shadow's, that it can be recorded as.
func (c Config) labelled(spec agent.Spec) (agent.Spec, error) {
	var err error
	if spec.Policy, err = resolve.Label(spec, c.Policies); err != nil || spec.Shadow == nil {
		return spec, err
	}
	shadow := *spec.Shadow // the caller's stays as it is
	shadow.Policy, err = resolve.Label(spec.Shadowed(), c.Policies)
	spec.Shadow = &shadow
	return spec, err
}
