package harbor

import (
	"regexp"
	"strings"

	"clove.run/clove/bench/suite"
)

// The phases whose network the caller decides about, and the two answers.
const (
	PhaseAgent  = "agent"
	PhaseGrader = "grader"
	AsStated    = "task" // what task.toml states
	NoNetwork   = "none"
)

// fetchers are programs that a test calls to install something.
const fetchers = `(^|[\s;&|(])(apt-get|apt|apk|dnf|yum|uv|uvx|pip|pip3|pipx|npm|npx|curl|wget|git clone|conda)(\s|$)`

// networks gives each phase what it may reach. What a list names is given; everything is given
// only if the caller says so.
func (t *task) networks(_ string, c config, o Options) error {
	mode, hosts := c.network(c.Agent)
	switch {
	case mode == modeList && o.Network[PhaseAgent] != NoNetwork:
		t.task.Network = suite.Network{Allow: hosts}
	case mode == modePublic && o.Network[PhaseAgent] == AsStated:
		t.task.Network = suite.Network{Mode: "public"}
	case mode == modePublic:
		t.note("the task states a public network for the agent, and it has none")
	}
	mode, hosts = c.network(c.Verifier.phase)
	switch answer := o.Network[PhaseGrader]; {
	case answer == AsStated && mode == modePublic:
		t.task.Grade.Network = suite.Network{Mode: "public"}
	case answer == AsStated && mode == modeList:
		t.task.Grade.Network = suite.Network{Allow: hosts}
	case answer == NoNetwork && mode != modeNone:
		t.note("the task states a network for its tests, and they have none")
	case answer == "" && mode != modeNone:
		return t.needsNone()
	}
	return nil
}

// needsNone refuses tests that would fetch something, as far as that can be read off test.sh.
func (t *task) needsNone() error {
	text, err := read(t.dir, testFile)
	if err != nil {
		return err
	}
	fetcher := regexp.MustCompile(fetchers)
	for i, line := range strings.Split(text, "\n") {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "echo ") {
			continue
		}
		if found := fetcher.FindStringSubmatch(line); found != nil {
			return refused(testFile, i+1, "it calls %s, and graders have no network (--network grader=task or grader=none)", found[2])
		}
	}
	return nil
}

func (t *task) note(text string) {
	if t.environment.Note != "" {
		text = t.environment.Note + "; " + text
	}
	t.environment.Note = text
}
