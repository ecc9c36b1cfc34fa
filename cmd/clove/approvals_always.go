package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// approvedPolicy is the document that --always begins where the run's policy is none of the answerer's own.
const approvedPolicy = "approved"

// always is a rule that an answer adds to a document of the answerer's own.
type always struct {
	path, line string
	text       []byte // of the whole document
	mode       fs.FileMode
	made       bool // the file is new
	has        bool // the document has the rule already
}

// planAlways finds the document for an answer to a question, and what it is to say. Nothing is written yet.
func planAlways(l *line, d *client.Client, a api.Approval) (*always, error) {
	h, err := host.Current()
	if err != nil {
		return nil, err
	}
	named := l.String(flagPolicy)
	switch {
	case a.Kind != api.ApproveNet:
		return nil, invalid(flagAlways, "use --this-run", "a question about %s becomes no rule of a policy", a.Kind)
	case int(a.Owner) != h.UID && (h.UID != 0 || named == ""):
		return nil, invalid(flagAlways, "the owner of the run says always; root names a policy of its own with --policy NAME", "the run belongs to user %d", a.Owner)
	case named != "" && agent.ValidateName(named) != nil:
		return nil, invalid(flagPolicy, "use its name, as clove policy list shows it", "%.64q is no name of a policy", named)
	}
	run, err := client.Do(l.Context.Context, d, methods.RunGet, api.RunParams{Run: string(a.Run)})
	if err != nil {
		return nil, err
	}
	return alwaysIn(h, named, run.Run.Spec.Policy.Name, a.Rule)
}

// alwaysIn is the change of the document named, or of the run's policy where that is the user's own, or of a new one that
// extends it.
func alwaysIn(h host.Host, named, ofRun, rule string) (*always, error) {
	if len(h.Policies) == 0 || h.Policies[0] == h.Ceiling {
		return nil, invalid(flagAlways, "set HOME", "there is no place for policies of yours")
	}
	dir := h.Policies[0]
	file := func(name string) string { return filepath.Join(dir, name+".yaml") }
	name := cmp.Or(named, ofRun)
	if named == "" && !host.Exists(file(name)) {
		name = approvedPolicy
	}
	a := &always{path: file(name), line: strconv.Quote(rule), mode: 0o600}
	if err := checkOwnFiles(h.UID, filepath.Dir(dir), dir, a.path); err != nil {
		return nil, err
	}
	if _, err := resolve.LoadPolicy(ofRun, h); err != nil { // a run with flags of its own has no policy with a name
		ofRun = policies.StandardName
	}
	before, err := host.ReadBounded(a.path, policies.MostBytes)
	if errors.Is(err, fs.ErrNotExist) {
		a.made = true
		before = []byte(fmt.Sprintf("version: 1\nname: %s\ndescription: what was allowed for ever when it was asked\nextends: %s\nwiden:\n  network: it was asked and allowed\n  ask: people decide the rest\nask: [net]\nnetwork:\n  mode: allowlist\n  allow: []\n",
			name, ofRun))
	} else if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "--always", Message: "cannot read " + a.path, Err: err}
	} else if info, err := os.Lstat(a.path); err == nil {
		a.mode = info.Mode().Perm()
	}
	if a.text, a.has, err = withRule(before, rule); err != nil {
		return nil, &agent.Error{Kind: agent.KindUnenforceable, Step: "--always", Message: a.path + " is not changed: " + agent.FailureOf(err).Message,
			Hint: "add " + a.line + " to network.allow there by hand, and answer with --this-run"}
	}
	return a, nil
}

// withRule adds a rule to the list network.allow of a document, and leaves each other line as it is.
func withRule(text []byte, rule string) (changed []byte, has bool, err error) {
	before, err := policies.Parse(text)
	if err != nil {
		return nil, false, err
	}
	if slices.Contains(before.Values[settings.Allow], rule) {
		return text, true, nil
	}
	changed = []byte(insertRule(string(text), strconv.Quote(rule)))
	after, err := policies.Parse(changed)
	if err != nil {
		return nil, false, err
	}
	want := settings.Values{}
	maps.Copy(want, before.Values)
	want[settings.Allow] = append(slices.Clone(want[settings.Allow]), rule)
	if !maps.EqualFunc(want, after.Values, slices.Equal) || !maps.Equal(before.Widen, after.Widen) || before.Name != after.Name || before.Extends != after.Extends {
		return nil, false, errors.New("it has no list network.allow in a form that can be extended")
	}
	return changed, false, nil
}

// insertRule puts an item behind the last of the list allow: of network:. Where it finds none the text stays.
func insertRule(text, item string) string {
	lines := strings.SplitAfter(text, "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimRight(line, " \n") == "network:" })
	if at < 0 {
		return text
	}
	for at++; at < len(lines); at++ {
		line := lines[at]
		body := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(body)]
		if indent == "" && strings.TrimSpace(body) != "" && body[0] != '#' {
			return text
		}
		list, is := strings.CutPrefix(strings.TrimRight(body, " \n"), "allow:")
		switch {
		case !is:
			continue
		case strings.TrimSpace(list) == "[]":
			lines[at] = indent + "allow:\n" + indent + "  - " + item + "\n"
		case strings.HasSuffix(list, "]"):
			lines[at] = indent + "allow:" + strings.TrimSuffix(list, "]") + ", " + item + "]\n"
		case strings.TrimSpace(list) == "":
			last, deep := at, indent+"  "
			for next := at + 1; next < len(lines); next++ {
				inner := strings.TrimLeft(lines[next], " ")
				if !strings.HasPrefix(inner, "- ") {
					break
				}
				last, deep = next, lines[next][:len(lines[next])-len(inner)]
			}
			lines[last] = strings.TrimSuffix(lines[last], "\n") + "\n" + deep + "- " + item + "\n"
		}
		return strings.Join(lines, "")
	}
	return text
}

// checkOwnFiles refuses files and directories that exist and are not the user's alone to write.
func checkOwnFiles(uid int, paths ...string) error {
	for i, path := range paths {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		refuse := func(why string) error {
			return &agent.Error{Kind: agent.KindUnenforceable, Step: "--always", Message: path + " is not written: " + why, Hint: "answer with --this-run, or put that right first"}
		}
		if err != nil {
			return refuse(err.Error())
		}
		stat, is := info.Sys().(*syscall.Stat_t)
		isFile := i == len(paths)-1
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			return refuse("it is a symbolic link")
		case isFile && !info.Mode().IsRegular():
			return refuse("it is no regular file")
		case !isFile && !info.IsDir():
			return refuse("it is no directory")
		case !is || int(stat.Uid) != uid:
			return refuse(fmt.Sprintf("it belongs to user %d, and you are user %d", stat.Uid, uid))
		case isFile && stat.Nlink > 1:
			return refuse("it has more than one name")
		case info.Mode()&0o022 != 0:
			return refuse("others may write to it")
		}
	}
	return nil
}

// write puts the document in place at once, checked as a policy before.
func (a *always) write() error {
	failed := func(err error) error {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "--always", Message: "it is allowed for this run, and " + a.path + " is not written", Err: err, Hint: "add " + a.line + " to its network.allow by hand"}
	}
	if a.has {
		return nil
	}
	dir := filepath.Dir(a.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failed(err)
	}
	if err := checkOwnFiles(os.Geteuid(), filepath.Dir(dir), dir, a.path); err != nil {
		return failed(err)
	}
	file, err := os.CreateTemp(dir, ".new-*.yaml")
	if err != nil {
		return failed(err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(a.text)
	err = cmp.Or(err, file.Chmod(a.mode))
	if err = cmp.Or(err, file.Close()); err != nil {
		return failed(err)
	}
	h, err := host.Current()
	if err == nil {
		_, err = resolve.LoadPolicy(file.Name(), h)
	}
	if err == nil {
		err = os.Rename(file.Name(), a.path)
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// says is what is shown of it.
func (a *always) says() string {
	name := strings.TrimSuffix(filepath.Base(a.path), ".yaml")
	if a.has {
		return fmt.Sprintf("%s has the rule %s already", a.path, a.line)
	}
	return fmt.Sprintf("%s allows %s from now on, for runs with --policy %s", a.path, a.line, name)
}
