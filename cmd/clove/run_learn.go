package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/learn"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// The answers to --learn-network.
const (
	learnAsk   = "ask"
	learnAllow = "allow"
	learnDeny  = "deny"
)

// observedEnding follows the name of a learned document in that of its observation.
const observedEnding = ".observed.json"

// learning is a run whose use becomes a policy. nil: the run is not observed.
type learning struct {
	host  host.Host
	path  string // of the document, absolute
	under string // the policy of the run: a level, or a document's path
	// network is what happens to targets that the policy refuses.
	network string
	reads   bool // the document names what may be read
	seen    *agent.Observed
}

// newLearning checks --learn before anything runs, so that no run is made in vain.
func newLearning(c *cli.Context, h host.Host) (*learning, error) {
	path := c.String(flagLearn)
	if path == "" {
		for _, flag := range []string{flagLearnNetwork, flagLearnReads} {
			if c.IsSet(flag) {
				return nil, invalid(flag, "add --"+flagLearn+" FILE", "without it nothing is learned")
			}
		}
		return nil, nil
	}
	if c.Bool(settings.Detach) {
		return nil, invalid(flagLearn, "omit -d: the policy is written when the run has ended", "it does not go together with -d")
	}
	if h.UID != 0 {
		return nil, &agent.Error{Kind: agent.KindPrivilege, Step: "--" + flagLearn, Message: "only root may use it",
			Hint: "ask root to learn the policy, and run the agent under it; a policy is a file that everybody may use"}
	}
	if mode := c.String(flagLearnNetwork); !slices.Contains([]string{"", learnAsk, learnAllow, learnDeny}, mode) {
		return nil, invalid(flagLearnNetwork, "write ask, allow or deny", "%.64q is none of them", mode)
	} else if mode == learnAllow && c.IsSet(flagNetwork) {
		return nil, invalid(flagLearnNetwork, "omit --"+flagNetwork, "allow opens the internet to the run, whatever --%s says", flagNetwork)
	}
	if c.String(flagLearnNetwork) == learnAsk && (c.Bool(flagTTY) || c.Bool(settings.AgentSocket) || len(c.StringSlice(flagGrant)) > 0) {
		return nil, invalid(flagLearnNetwork, "write allow or deny, or omit the other flag", "ask does not go together with --%s, --%s and --%s", flagTTY, flagGrant, settings.AgentSocket)
	}
	l := &learning{host: h, path: h.Absolute(path), under: policies.StandardName, network: c.String(flagLearnNetwork), reads: c.Bool(flagLearnReads)}
	if err := l.checkPath(); err != nil {
		return nil, err
	}
	if policy := c.String(flagPolicy); policy != "" && !slices.Contains(policies.Levels, policy) {
		loaded, err := resolve.LoadPolicy(policy, h)
		if err != nil {
			return nil, err
		}
		l.under = loaded.Chain[0].Source
	} else if policy != "" {
		l.under = policy
	}
	return l, nil
}

// checkPath refuses a file that cannot become the document, and one that was not learned: a
// policy that a user wrote is not lost.
func (l *learning) checkPath() error {
	step := "--" + flagLearn
	if filepath.Ext(l.path) != ".yaml" || agent.ValidateName(l.name()) != nil || slices.Contains(policies.Levels, l.name()) {
		return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: "this is no file name for a policy", Hint: "write NAME.yaml, with a NAME of letters, digits, '-', '_' and '.' that is no level"}
	}
	if info, err := os.Stat(filepath.Dir(l.path)); err != nil || !info.IsDir() {
		return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: "cannot write the policy", Hint: "name a file in a directory that exists", Err: err}
	}
	_, err := os.Lstat(l.path)
	if _, observed := os.Lstat(l.path + observedEnding); err == nil && observed != nil {
		return &agent.Error{Kind: agent.KindConflict, Step: step, Message: l.path + " exists, and was not learned", Hint: "name another file"}
	}
	return nil
}

func (l *learning) name() string { return strings.TrimSuffix(filepath.Base(l.path), ".yaml") }

// filterPath is the file of the learned filter, beside the document.
func (l *learning) filterPath() string { return strings.TrimSuffix(l.path, ".yaml") + ".seccomp.json" }

// write makes the files of an observation: the document last, because it names the filter.
func (l *learning) write(o learn.Observation) (learned learn.Learned, err error) {
	learned, err = learn.Write(o, l.name(), "./"+filepath.Base(l.filterPath()), func(d policies.Document) (learn.Extended, error) {
		from := l.host
		from.Dir = filepath.Dir(l.path)
		parent, own, err := resolve.Extended(d, from)
		return learn.Extended{Parent: parent, Own: own}, err
	})
	if err != nil {
		return learned, err
	}
	text, err := o.Text()
	if err == nil {
		err = readable(l.path+observedEnding, text)
	}
	if err == nil && learned.Filter != nil {
		err = readable(l.filterPath(), learned.Filter)
	} else if err == nil {
		if err = os.Remove(l.filterPath()); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = readable(l.path, learned.Document)
	}
	if err != nil {
		err = &agent.Error{Kind: agent.KindInternal, Step: "--" + flagLearn, Message: "cannot write what was learned", Err: err}
	}
	return learned, err
}

// readable replaces a file that others may read.
func readable(path string, text []byte) error {
	return atomicfile.Replace(path, 0o600, func(file *os.File) error {
		_, err := file.Write(text)
		return errors.Join(err, file.Chmod(0o644))
	})
}

// settle writes the policy of a run that has ended.
func (l *learning) settle(s *screen, spec agent.Spec, record agent.Record) error {
	if l == nil {
		return nil
	}
	if l.seen == nil {
		s.say("clove", cyan, "warning: nothing was learned: the agent never executed")
		return nil
	}
	o := learn.New(spec, l.under, record, *l.seen)
	o.Reads = l.reads
	learned, err := l.write(o)
	if err != nil {
		return err
	}
	reportLearned(s, l.path, o, learned)
	return nil
}

// reportLearned says what there is now, and what is doubtful about it.
func reportLearned(s *screen, path string, o learn.Observation, learned learn.Learned) {
	if s.json {
		return
	}
	s.say("clove", cyan, "learned "+path+": "+o.String()+"; clove run --policy "+path+" holds the agent to it")
	for _, r := range o.Runs {
		if r.Failed() {
			s.say("clove", cyan, "warning: learned from a run that failed: what it did not come to is not allowed")
			break
		}
	}
	for _, why := range o.Incomplete {
		s.say("clove", cyan, "warning: the policy is incomplete: "+why)
	}
	if len(learned.Unlisted) > 0 {
		s.say("clove", cyan, "warning: the policy has no list of programs: "+learned.Unlisted[0])
	}
	if learned.Unread != "" {
		s.say("clove", cyan, "warning: the policy has no list of what may be read: "+learned.Unread)
	}
	if !o.CallsKnown {
		s.say("clove", cyan, "warning: system calls were not observed: the filter stays as the run had it")
	}
}
