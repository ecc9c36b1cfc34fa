package resolve

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/homedir"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// showHomeDirs finds the folders of the caller's home, with the caller's rights, and adds their
// programs to PATH.
func (b *builder) showHomeDirs() error {
	for i := range b.spec.Files.Binds {
		if bind := &b.spec.Files.Binds[i]; bind.CopyOnWrite {
			if err := b.showHomeDir(bind); err != nil {
				return err
			}
		}
	}
	return nil
}

// showHomeDir refuses a link that leads out of the home: for root, whose rights open every
// folder, a user could have put it into a home that is that user's.
func (b *builder) showHomeDir(bind *agent.Bind) error {
	name := strings.TrimPrefix(bind.Target, b.spec.User.Home+"/")
	home, _ := b.host.Lookup("HOME")
	real, err := filepath.EvalSymlinks(home)
	if !filepath.IsAbs(home) || err != nil || real == "/" {
		return invalid(settings.HomeDir, "set HOME to your home", "HOME is %q, and that is no home", home)
	}
	hint := "check the name; it is one of your home's"
	if user, under := b.host.Lookup("SUDO_USER"); under {
		hint = "sudo has a HOME of its own: sudo --preserve-env=HOME clove run … keeps that of " + user
	}
	source := filepath.Join(real, name)
	if !host.IsDirectory(source) {
		return invalid(settings.HomeDir, hint, "%s has no folder %s", home, name)
	}
	if bind.Source, err = filepath.EvalSymlinks(source); err != nil {
		return agent.Failed("--"+settings.HomeDir, err)
	}
	if !host.Within(bind.Source, real) || bind.Source == real {
		return invalid(settings.HomeDir, "to show it read-only: -v "+bind.Source+":"+bind.Target+":ro", "%s leads out of the home, to %s", name, bind.Source)
	}
	if err := checkSecrets(bind, strings.TrimPrefix(bind.Source, real+"/"), name); err != nil {
		return err
	}
	for _, bin := range []string{"", "bin"} {
		if at := path.Join(bind.Target, bin); path.Base(at) == "bin" && host.IsDirectory(filepath.Join(bind.Source, bin)) {
			b.path = append(b.path, at)
		}
	}
	return nil
}

// checkSecrets looks by both names: what a link leads to is a place of the home too.
func checkSecrets(bind *agent.Bind, real, name string) error {
	if bind.Secrets {
		return nil
	}
	for _, at := range []string{real, name} {
		err := homedir.Check(bind.Source, at)
		if errors.Is(err, homedir.ErrSecrets) {
			return invalid(settings.HomeDir, "move them away, name the folders that are needed, or write "+name+":secrets to show them", "%s is not shown: %v", name, err)
		}
		if err != nil {
			return &agent.Error{Kind: agent.KindInvalid, Step: "--" + settings.HomeDir, Message: "cannot use " + name, Hint: "name a folder that you can read", Err: err}
		}
	}
	return nil
}
