package settings

import (
	"path"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// withSecrets stands behind a folder that is shown with the credentials in it.
const withSecrets = ":secrets"

// readHomeDirs enters the places inside. A policy is read where no caller's home is known, so
// policies/resolve fills in the sources.
func readHomeDirs(r *Reader, text string) error {
	const hint = "name folders below your home, for example --" + HomeDir + " .cargo,.local/bin"
	for _, entry := range strings.Split(text, ",") {
		name, secrets := strings.CutSuffix(entry, withSecrets)
		clean := path.Clean(name)
		switch {
		case name == "" || clean == "." || path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), ".."):
			return Invalid(HomeDir, hint, "%q is not a folder below the home", entry)
		case strings.ContainsAny(name, ":\n\x00"):
			return Invalid(HomeDir, "write FOLDER or FOLDER"+withSecrets, "%q is not a folder of the home", entry)
		}
		bind := agent.Bind{Target: path.Join(r.Spec.User.Home, clean), ReadOnly: true, CopyOnWrite: true, Secrets: secrets}
		// A flag may repeat what a policy lists, and widen it.
		r.Spec.Files.Binds = slices.DeleteFunc(r.Spec.Files.Binds, func(b agent.Bind) bool { return b.CopyOnWrite && b.Target == bind.Target })
		r.Spec.Files.Binds = append(r.Spec.Files.Binds, bind)
	}
	return nil
}

// writeHomeDirs leaves out a copied directory that an API call put outside of the home.
func writeHomeDirs(s agent.Spec) (folders []string) {
	for _, b := range s.Files.Binds {
		name, below := strings.CutPrefix(b.Target, s.User.Home+"/")
		if !b.CopyOnWrite || !below {
			continue
		}
		if b.Secrets {
			name += withSecrets
		}
		folders = append(folders, name)
	}
	return folders
}

// widerHomeDirs compares by the place in the home, because the home is the caller's. What is copied to
// another place is of no document, and is more.
func widerHomeDirs(base, wide agent.Spec) []Difference {
	more := writeHomeDirs(wide)
	for _, b := range wide.Files.Binds {
		if b.CopyOnWrite && !strings.HasPrefix(b.Target, wide.User.Home+"/") {
			more = append(more, b.Source+":"+b.Target)
		}
	}
	return beyond(writeHomeDirs(base), more, func(have []string, folder string) bool {
		plain := strings.TrimSuffix(folder, withSecrets)
		return slices.ContainsFunc(have, func(b string) bool {
			within, secrets := strings.CutSuffix(b, withSecrets)
			return (plain == within || strings.HasPrefix(plain, within+"/")) && (secrets || plain == folder)
		})
	})
}

// readKeptHome leaves the folder to its caller: the command may decide over the workspace.
func readKeptHome(r *Reader, text string) error {
	r.Spec.Files.Home = &agent.Home{Name: text}
	return ofFlag("--"+KeptHome, agent.ValidateName(text))
}

// readKept leaves the check to its caller: the home may follow.
func readKept(r *Reader, text string) error {
	r.Spec.Files.Keep = append(r.Spec.Files.Keep, text)
	return nil
}
