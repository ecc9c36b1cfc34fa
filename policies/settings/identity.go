package settings

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"clove.run/clove/agent"
)

// Names of identities that code asks for.
const (
	Env      = "env"
	EnvFile  = "env-file"
	Workdir  = "workdir"
	User     = "user"
	Name     = "name"
	Label    = "label"
	Hostname = "hostname"

	EnvironmentSet  = "environment.set"
	EnvironmentPass = "environment.pass"
)

// Identity is names: the run's, the user's, the host's and the labels.
var Identity = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{
		{Flag: Name, Group: GroupIdentity, Usage: "name of the run", Default: "made from the script's", Read: one(readName)},
		{
			Flag: User, Short: "u", Key: "user", Group: GroupIdentity, Usage: "NAME|UID[:GID] inside; root has no rights outside",
			Say:  func(s agent.Spec) string { return s.User.Name },
			Doc:  "the user inside: agent, root, or UID[:GID]; root is root inside only",
			Read: one(readUser), Write: writeUser, Wider: widerUser,
		},
		{Flag: Hostname, Manifest: Hostname, Group: GroupIdentity, Usage: "host name inside, also -h NAME", Default: "the run's ID", Read: one(readHostname)},
		{Flag: Label, Manifest: "labels", Short: "l", Form: List, Flags: Join, Group: GroupIdentity, Usage: "label as KEY=VALUE, kept with the record", Read: each(readLabel)},
		{
			Flag: Workdir, Manifest: Workdir, Short: "w", Group: GroupIdentity, Usage: "working directory inside",
			Say:  func(s agent.Spec) string { return s.Dir },
			Read: one(readWorkdir),
		},
	}}
})

// Environment is variables. Request.EachVariable of policies/resolve reads them together, and
// compares none: no policy bounds them.
var Environment = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{
		{Key: EnvironmentSet, Form: Map, Extends: ByName, Doc: "variables and their values"},
		{Key: EnvironmentPass, Form: List, Extends: Union, Doc: "variables that the caller's environment gives the value of"},
		{Flag: Env, Short: "e", Form: List, Flags: Join, Group: GroupIdentity, Usage: "set KEY=VALUE, or pass on the caller's KEY; kept in clear until rm"},
		{Flag: EnvFile, Manifest: "environment.files", Form: List, Flags: Join, Group: GroupIdentity, Usage: "read variables from a file"},
	}}
})

func readName(r *Reader, text string) error {
	r.Spec.Name = text
	return agent.ValidateName(text)
}

func readUser(r *Reader, text string) (err error) {
	root := cmp.Or(r.Text(Rootfs), "/")
	if r.Image {
		root = ""
	}
	r.Spec.User, err = ParseUser(text, r.Host.Absolute(root))
	return err
}

func writeUser(s agent.Spec) []string {
	for _, known := range namedUsers {
		if known.UID == s.User.UID && known.GID == s.User.GID {
			return []string{known.Name}
		}
	}
	return []string{fmt.Sprintf("%d:%d", s.User.UID, s.User.GID)}
}

func widerUser(base, wide agent.Spec) []Difference {
	return more(wide.User.UID == 0 && base.User.UID != 0, base.User.Name, "root inside")
}

func readHostname(r *Reader, text string) error {
	if r.Spec.Hostname = text; !agent.IsHostname(text) {
		return Invalid(Hostname, "use 1 to 63 letters, digits and '-', in parts that are joined by '.'", "%q is not a host name", text)
	}
	return nil
}

// readLabel keeps the last of two labels with one key, as -e does. Characters that do not
// print are refused, because listings show labels on terminals.
func readLabel(r *Reader, text string) error {
	key, value, valued := strings.Cut(text, "=")
	if key == "" || strings.ContainsFunc(text, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return Invalid(Label, "write KEY=VALUE", "%q is not a label", text)
	}
	if !valued {
		return Invalid(Label, "write "+key+"=VALUE, or "+key+"= for a label without a value", "%q has no value", text)
	}
	if r.Spec.Labels == nil {
		r.Spec.Labels = map[string]string{}
	}
	r.Spec.Labels[key] = value
	return nil
}

// readWorkdir does not look for the directory, which need not exist here: clove-init finds out
// inside.
func readWorkdir(r *Reader, text string) error {
	if !path.IsAbs(text) || slices.Contains(strings.Split(text, "/"), "..") {
		return Invalid(Workdir, "write an absolute path inside the sandbox, for example "+agent.WorkspaceDir, "%q is not an absolute path", text)
	}
	r.Spec.Dir = path.Clean(text)
	return nil
}
