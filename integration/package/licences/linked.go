package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// take returns the part with this name, and adds it if it is new: several programs share
// most of their parts.
func take(linked map[string]*part, name, version string) *part {
	if linked[name] == nil {
		linked[name] = &part{name: name, version: version}
	}
	return linked[name]
}

// addGo adds Go's library and runtime.
func addGo(linked map[string]*part, version string) error {
	root, err := output(exec.Command("go", "env", "GOROOT"))
	if err != nil {
		return err
	}
	return take(linked, "Go", version).addFolder(root, root)
}

// goPackage is what go list -json prints about a package.
type goPackage struct {
	Dir    string
	Module *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// addModules adds the modules that a program is linked with. It asks go list with the
// settings that the program was built with: tags and CGO_ENABLED decide which packages are
// in it.
func addModules(linked map[string]*part, info *buildinfo.BuildInfo) error {
	command := exec.Command("go", "list", "-deps", "-json=Dir,Module", "-tags", setting(info, "-tags"), info.Path)
	command.Env = append(os.Environ(), "CGO_ENABLED="+setting(info, "CGO_ENABLED"), "GOOS="+setting(info, "GOOS"), "GOARCH="+setting(info, "GOARCH"))
	listed, err := output(command)
	if err != nil {
		return err
	}
	for decoder := json.NewDecoder(strings.NewReader(listed)); ; {
		var p goPackage
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return sameModules(linked, info)
		case err != nil:
			return err
		case p.Module == nil || p.Module.Main:
			continue
		}
		part := take(linked, p.Module.Path, p.Module.Version)
		// Up to the module's root: a folder may have been taken from elsewhere and have a
		// licence of its own.
		for folder := p.Dir; len(folder) >= len(p.Module.Dir); folder = filepath.Dir(folder) {
			if err := part.addFolder(p.Module.Dir, folder); err != nil {
				return err
			}
		}
	}
}

// sameModules compares the tree with what the program says about itself: it may be an older
// build, with other versions.
func sameModules(linked map[string]*part, info *buildinfo.BuildInfo) error {
	for _, module := range info.Deps {
		if p := linked[module.Path]; p == nil || p.version != module.Version {
			return fmt.Errorf("it is linked with %s %s, and the tree with another version: build it anew", module.Path, module.Version)
		}
	}
	return nil
}

// libraries are the static C libraries that the linker takes: libseccomp, the C library and the
// compiler's own.
var libraries = []string{"libseccomp.a", "libc.a", "libgcc.a"}

// addLibraries adds the Debian packages of the static C libraries.
func addLibraries(linked map[string]*part) error {
	for _, library := range libraries {
		path, err := output(exec.Command("gcc", "-print-file-name="+library))
		if err == nil {
			// dpkg knows files by their own paths, not by a link's.
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return fmt.Errorf("cannot find %s: %w", library, err)
		}
		owner, err := output(exec.Command("dpkg-query", "-S", path))
		if err != nil {
			return err
		}
		name, _, _ := strings.Cut(owner, ":")
		version, err := output(exec.Command("dpkg-query", "-W", "-f", "${Version}\n", name))
		if err != nil {
			return err
		}
		version, _, _ = strings.Cut(version, "\n") // of two architectures it is the same
		folder, err := filepath.EvalSymlinks(filepath.Join("/usr/share/doc", name))
		if err != nil {
			return err
		}
		if err := take(linked, name, version).addFile(folder, filepath.Join(folder, "copyright")); err != nil {
			return err
		}
	}
	return nil
}

// setting is one of the settings that a program was built with; "" if it was not given.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// output is what a command prints, without the line break at its end.
func output(command *exec.Cmd) (string, error) {
	var said bytes.Buffer
	command.Stderr = &said
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return strings.TrimSpace(string(text)), nil
}
