package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what a run begins with. Its agent may get more grants later.
const (
	firstGrantsMost  = 256
	firstBudgetsMost = 64
	grantTextMost    = 600 // bytes: a pattern with its kind and rights
	namespaceMost    = 255
	denialsMost      = 1 << 31
)

// checkKernel checks the forms. The packages of grants and budgets check the meaning.
func checkKernel(s Spec) error {
	k := s.Kernel
	switch {
	case len(k.Grants) > firstGrantsMost:
		return wrong("kernel.grants", fmt.Sprintf("use at most %d", firstGrantsMost), "there are %d grants", len(k.Grants))
	case len(k.Budgets) > firstBudgetsMost:
		return wrong("kernel.budgets", fmt.Sprintf("use at most %d", firstBudgetsMost), "there are %d budgets", len(k.Budgets))
	case k.HasSocket() && s.Network == NetworkHost:
		return wrong("kernel", "use another --network: the gate that serves the agent's socket is also its network", "a run in the host's network cannot have a socket of its own")
	case slices.ContainsFunc(k.Asks, func(ask string) bool { _, _, sound := ParseAsk(ask); return !sound }):
		return wrong("kernel.asks", "use "+strings.Join(Asks, ", ")+", or "+Asks[0]+"=N, of at most "+strconv.Itoa(PeopleMost)+" users", "%q: people are not asked about that", k.Asks)
	case k.People(AskNet) > 0 && s.Network != NetworkAllowlist:
		return wrong("kernel.asks", "add --network allowlist", "people are asked about connections that no rule of an allowlist covers, and the network is %s", s.Network)
	case k.People(AskBudget) > 0 && !slices.ContainsFunc(k.Budgets, pauses):
		return wrong("kernel.asks", "add --budget, for example cost=2usd, or leave budget out of --ask", "people are asked for more of a budget that is spent, and the run has none that pauses it")
	case k.People(AskBudget) > 0 && k.AtEnd != "pause":
		return wrong("kernel.asks", "use --at-end pause, or leave --at-end out", "people are asked about a budget that pauses the run, and at its end it does not")
	case k.People(AskApply) > 0 && s.Files.Workspace == "":
		return wrong("kernel.asks", "name a directory with --workspace, or leave apply out of --ask", "people are asked about changes of a workspace, and the run has none")
	case k.People(AskSecret) > 0 && len(k.Secrets) == 0:
		return wrong("kernel.asks", "add --secret, or leave secret out of --ask", "people are asked about uses of secrets, and the run has none")
	case k.People(AskTool) > 0 && !k.HasTools():
		return wrong("kernel.asks", "add --grant tool:NAME, or leave tool out of --ask", "people are asked about calls of tools, and the run may call none")
	case k.AskHold != 0 && (k.AskHold < AskHoldLeast || k.AskHold > AskHoldMost):
		return wrong("kernel.ask_hold_ns", fmt.Sprintf("use %s to %s", AskHoldLeast, AskHoldMost), "a connection cannot be held for %s", k.AskHold)
	case k.AskHold != 0 && k.People(AskNet) == 0 && k.People(AskSecret) == 0 && k.People(AskTool) == 0:
		return wrong("kernel.ask_hold_ns", "add --ask "+AskNet+", --ask "+AskSecret+" or --ask "+AskTool, "nothing of this run is held for people's answer")
	case k.ModelLog && !k.HasModels():
		return wrong("kernel.model_log", "add --model NAME", "a run that may call no model has none to log")
	case k.AtEnd != "" && !slices.Contains(AtEnds, k.AtEnd):
		return wrong("kernel.at_end", "use "+strings.Join(AtEnds, ", "), "%.64q is not an action for a spent budget", k.AtEnd)
	}
	if err := checkSecrets(s); err != nil {
		return err
	}
	if err := k.checkChildren(); err != nil {
		return err
	}
	for _, text := range slices.Concat(k.Grants, k.Budgets) {
		if err := checkText("kernel", text, grantTextMost); err != nil {
			return err
		}
	}
	if _, _, err := k.Denial(); err != nil {
		return err
	}
	if err := ValidateCallout("kernel.on_warn", k.OnWarn); err != nil {
		return err
	}
	if err := ValidateCallout("kernel.on_end", k.OnEnd); err != nil {
		return err
	}
	if err := checkOnAsk(s); err != nil {
		return err
	}
	if _, err := s.ModelSetupFile(); err != nil {
		return err
	}
	if err := k.checkIdle(); err != nil {
		return err
	}
	return ValidateNamespace(k.Namespace)
}

// pauses reports whether the run can pause when a budget is spent: a start that children do not admit is refused, and
// nothing else happens.
func pauses(text string) bool { return !strings.HasPrefix(text, "children=") }

// checkIdle refuses a time that nothing could end, because the agent has no calls that wait.
func (k Kernel) checkIdle() error {
	switch {
	case k.Idle == 0:
		return nil
	case k.Idle < IdleFloor || k.Idle > ClockCeiling:
		return wrong("kernel.idle_ns", fmt.Sprintf("give a time of at least %s, or omit it", IdleFloor), "%s is not a time after which an agent is idle", k.Idle)
	case !k.HasSocket():
		return wrong("kernel.idle_ns", "add --agent-socket or a grant", "an agent without a socket of its own waits for nothing, and is never idle")
	}
	return nil
}

// checkChildren refuses what is said about children of a run that has none.
func (k Kernel) checkChildren() error {
	switch {
	case k.SpawnDepth < 0 || k.SpawnDepth > SpawnDepthMost:
		return wrong("kernel.spawn_depth", fmt.Sprintf("use 0 to %d", SpawnDepthMost), "%d is no depth", k.SpawnDepth)
	case slices.ContainsFunc(k.Grants, func(text string) bool { return strings.HasPrefix(text, "spawn:") && strings.Contains(text, "*") }):
		return wrong("kernel.grants", "give one grant for each manifest", "a grant of kind spawn names one manifest, without a star")
	case k.Orphans != "" && k.Orphans != OrphansKeep:
		return wrong("kernel.orphans", "use "+OrphansKeep+", or omit it", "%.64q is not an action for children", k.Orphans)
	case (k.SpawnDepth != 0 || k.Orphans != "") && !k.HasChildren():
		return wrong("kernel", "add --grant spawn:NAME", "it says what holds for children, and may start none")
	}
	return nil
}

// ValidateNamespace refuses a path that is not names joined by "/". The empty one is the
// owner's own.
func ValidateNamespace(namespace string) error {
	if namespace == "" {
		return nil
	}
	for step := range strings.SplitSeq(namespace, "/") {
		if len(namespace) > namespaceMost || ValidateName(step) != nil {
			return wrong("kernel.namespace", "join names by '/', for example acme/research", "%.64q is not a namespace", namespace)
		}
	}
	return nil
}

// Denial returns what a refusal does to the run: "deny", "pause" or "end", the last from
// the refusal with this number on.
func (k Kernel) Denial() (what string, after int, err error) {
	switch what, count, counted := strings.Cut(k.OnDenial, ":"); {
	case k.OnDenial == "":
		return "deny", 1, nil
	case !counted && slices.Contains([]string{"deny", "pause", "end"}, what):
		return what, 1, nil
	case what == "end-after":
		if n, err := strconv.Atoi(count); err == nil && n > 0 && n < denialsMost && strconv.Itoa(n) == count {
			return "end", n, nil
		}
	}
	return "", 0, wrong("kernel.on_denial", "use deny, pause, end or end-after:N", "%.64q is not an action for a refused call", k.OnDenial)
}
