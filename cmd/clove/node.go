package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/deploy/node"
)

const (
	flagContainerdConfig = "containerd-config"
	flagHandler          = "handler"
	flagRuntime          = "runtime"
	flagService          = "service"
	flagCloved           = "cloved"
)

// answerYes and answerNo are the values of --restart and --cloved. A value and not a
// switch: the default of one is yes.
const answerYes, answerNo = "yes", "no"

// clovedAnswer bounds the wait for cloved's first answer: it reads the store before it
// serves, which may be large.
const clovedAnswer = 2 * time.Minute

// nodeVerbs are those of clove node.
type nodeVerbs program

func nodeCommand() command {
	return command{
		task: "administer", usage: "register clove with this machine's containerd, for Kubernetes",
		verbs: []verb{{line: "clove node install|uninstall [flags]", act: of(nodeVerbs.perform), free: true}},
		description: "install adds clove-oci as a runtime handler to containerd's configuration (containerd 1.6 and later), between two\n" +
			"marker lines, and keeps a copy of the file as it was. A second install changes nothing. uninstall takes away what\n" +
			"install wrote, byte by byte. A containerd that does not start with the new file gets the old one again.\n" +
			"Network rules of pods need cloved, so install also has systemd run the one beside clove-oci, unless another serves\n" +
			"already: that one is left alone, by uninstall too.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagContainerdConfig, Usage: "containerd's configuration", Value: "/etc/containerd/config.toml"},
			&cli.StringFlag{Name: flagHandler, Usage: "install: what a RuntimeClass calls the handler", Value: "clove"},
			&cli.StringFlag{Name: flagRuntime, Usage: "install: path of clove-oci", DefaultText: "clove-oci beside clove"},
			&cli.StringFlag{Name: flagCloved, Usage: "have systemd run cloved; uninstall: end it, and what it holds: yes or no", Value: answerYes},
			&cli.StringFlag{Name: flagRestart, Usage: "restart containerd if its configuration changed: yes or no", Value: answerNo},
			&cli.StringFlag{Name: flagService, Usage: "containerd's systemd unit", Value: "containerd.service"},
			jsonFlag("write what was done as JSON"),
		},
	}
}

func (p nodeVerbs) perform(c *cli.Context) error {
	containerd, err := containerdOf(c)
	if err != nil {
		return err
	}
	with, err := isYes(c, flagCloved)
	if err != nil {
		return err
	}
	var result node.Result
	switch verb := c.Args().First(); {
	case c.NArg() == 1 && verb == "install":
		result, err = installNode(p.access, c, containerd, with)
	// uninstall removes what is there, whatever it is called. A flag of install's would
	// suggest otherwise.
	case c.NArg() == 1 && verb == "uninstall":
		for _, flag := range []string{flagHandler, flagRuntime} {
			if c.IsSet(flag) {
				return invalid(flag, "omit it: uninstall takes away what install wrote", "it is install's")
			}
		}
		if with {
			result, err = node.UninstallWith(c.Context, clovedOf(p.access, ""), containerd)
		} else {
			result, err = node.Uninstall(c.Context, containerd)
		}
	default:
		err = invalid("", "clove node install, or clove node uninstall", "node takes one word, not %q", c.Args().Slice())
	}
	if err != nil {
		return err
	}
	return printNode(p.screen, c, result)
}

// installNode registers the clove-oci beside this program, unless another is named.
func installNode(a *access, c *cli.Context, containerd node.Containerd, with bool) (node.Result, error) {
	runtime, err := ociRuntime(c.String(flagRuntime))
	if err != nil {
		return node.Result{}, err
	}
	handler := node.Handler{Name: c.String(flagHandler), Binary: runtime}
	if !with {
		return node.Install(c.Context, containerd, handler)
	}
	return node.InstallWith(c.Context, clovedOf(a, filepath.Dir(runtime)), containerd, handler)
}

// clovedOf describes the cloved that clove-oci calls when the engine's environment
// names no other socket. programs is the directory of the programs.
func clovedOf(a *access, programs string) node.Cloved {
	return node.Cloved{Programs: programs, Units: a.systemd.units, Booted: a.systemd.booted, Systemctl: systemctl,
		Serves: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, clovedAnswer)
			defer cancel()
			cloved, err := a.dial(ctx, api.DefaultSocket)
			if err != nil {
				return err
			}
			defer cloved.Close()
			// A connection proves nothing: systemd accepts it for a cloved that does
			// not run yet.
			_, err = client.Do(ctx, cloved, methods.Info, api.Nothing{})
			return err
		}}
}

// isYes reads a flag whose value is yes or no.
func isYes(c *cli.Context, flag string) (bool, error) {
	switch text := c.String(flag); text {
	case answerYes, answerNo:
		return text == answerYes, nil
	default:
		return false, invalid(flag, "write yes or no", "%q is neither", text)
	}
}

// containerdOf reads the flags about containerd.
func containerdOf(c *cli.Context) (node.Containerd, error) {
	containerd := node.Containerd{Config: c.String(flagContainerdConfig)}
	if containerd.Config == "" {
		return containerd, invalid(flagContainerdConfig, "omit the flag for /etc/containerd/config.toml", "no file is named")
	}
	restart, err := isYes(c, flagRestart)
	if restart {
		containerd.Restart = func(ctx context.Context) error {
			_, err := systemctl(ctx, "restart", c.String(flagService))
			return err
		}
	}
	return containerd, err
}

// ociRuntime is the path of the program that containerd will call, absolute:
// containerd's working directory is not the caller's.
func ociRuntime(named string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	own, err := os.Executable()
	if err != nil {
		return "", agent.Failed("runtime", err)
	}
	return filepath.Join(filepath.Dir(own), "clove-oci"), nil
}

// systemctl runs systemctl, which waits until the job has finished, and returns its
// output. The error has what it wrote to stderr.
func systemctl(ctx context.Context, args ...string) (string, error) {
	var said bytes.Buffer
	command := exec.CommandContext(ctx, "systemctl", args...)
	command.Stderr = &said
	output, err := command.Output()
	if err == nil {
		return string(output), nil
	}
	if text := bytes.TrimSpace(said.Bytes()); len(text) > 0 {
		err = errors.Join(err, errors.New(printable(string(text))))
	}
	return "", fmt.Errorf("cannot %s: %w", strings.Join(append([]string{"systemctl"}, args...), " "), err)
}

// printNode prints what was done; a second call did nothing.
func printNode(s *screen, c *cli.Context, result node.Result) error {
	if s.json {
		return s.printJSON(result)
	}
	line := result.Config + " is up to date"
	switch {
	case result.Restarted:
		line = result.Config + " changed, and " + c.String(flagService) + " was restarted"
	case result.Changed:
		line = result.Config + " changed; containerd reads it when it is restarted"
	}
	lines := line + "\n"
	if result.Cloved != nil {
		lines += clovedText(c.Args().First(), *result.Cloved) + "\n"
	}
	_, err := fmt.Fprint(s.out, lines)
	return err
}

// clovedText is what became of cloved. A cloved without a unit was started by another
// service manager.
func clovedText(verb string, result node.ClovedResult) string {
	whose := result.Unit
	if whose == "" {
		whose = "without a unit of its own"
	}
	switch {
	case !result.Own && verb == "uninstall":
		return "clove node install has installed no cloved here"
	case !result.Own:
		return "cloved (" + whose + ") was not installed by clove node install: it is used, and not changed"
	case verb == "uninstall":
		return "cloved was stopped, and " + whose + " removed"
	case result.Changed:
		return whose + " changed, and cloved serves"
	}
	return whose + " is up to date, and cloved serves"
}
