package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/node"
)

const (
	flagContainerdConfig = "containerd-config"
	flagHandler          = "handler"
	flagRuntime          = "runtime"
	flagService          = "service"
)

// The values of node's --restart.
const restartYes, restartNo = "yes", "no"

func (p *program) nodeCommand() *cli.Command {
	return &cli.Command{
		Name: "node", Usage: "make containerd on this machine know clove, for Kubernetes", UsageText: "clove node install|uninstall [flags]",
		Description: "install adds clove-oci as a runtime handler to containerd's configuration (containerd 1.6 and later), between two\n" +
			"marker lines, and keeps a copy of the file as it was. A second install changes nothing. uninstall takes away what\n" +
			"install wrote, byte by byte. A containerd that does not start with the new file gets the old one again.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagContainerdConfig, Usage: "containerd's configuration", Value: "/etc/containerd/config.toml"},
			&cli.StringFlag{Name: flagHandler, Usage: "install: what a RuntimeClass calls the handler", Value: "clove"},
			&cli.StringFlag{Name: flagRuntime, Usage: "install: path of clove-oci", DefaultText: "clove-oci beside clove"},
			&cli.StringFlag{Name: flagRestart, Usage: "restart containerd if its configuration changed: yes or no", Value: restartNo},
			&cli.StringFlag{Name: flagService, Usage: "containerd's systemd unit", Value: "containerd.service"},
			jsonFlag("write what was done as JSON"),
		},
		Action: p.node,
	}
}

func (p *program) node(c *cli.Context) error {
	containerd, err := containerdOf(c)
	if err != nil {
		return err
	}
	var result node.Result
	switch word := c.Args().First(); {
	case c.NArg() == 1 && word == "install":
		var runtime string
		if runtime, err = ociRuntime(c.String(flagRuntime)); err == nil {
			result, err = node.Install(c.Context, containerd, node.Handler{Name: c.String(flagHandler), Binary: runtime})
		}
	case c.NArg() == 1 && word == "uninstall":
		for _, flag := range []string{flagHandler, flagRuntime} {
			if c.IsSet(flag) {
				return invalid(flag, "leave it away: uninstall takes away what install wrote", "it is install's")
			}
		}
		result, err = node.Uninstall(c.Context, containerd)
	default:
		err = invalid("", "clove node install, or clove node uninstall", "node takes one word, not %q", c.Args().Slice())
	}
	if err != nil {
		return err
	}
	return p.tellNode(c, result)
}

// containerdOf reads what the flags say of containerd.
func containerdOf(c *cli.Context) (node.Containerd, error) {
	containerd := node.Containerd{Config: c.String(flagContainerdConfig)}
	if containerd.Config == "" {
		return containerd, invalid(flagContainerdConfig, "leave the flag away for /etc/containerd/config.toml", "no file is named")
	}
	switch text := c.String(flagRestart); text {
	case restartNo:
	case restartYes:
		containerd.Restart = func(ctx context.Context) error { return systemctlRestart(ctx, c.String(flagService)) }
	default:
		return containerd, invalid(flagRestart, "write yes or no", "%q is neither", text)
	}
	return containerd, nil
}

// ociRuntime is the program that containerd is to call.
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

// systemctlRestart waits until the service is ready, or says why it is not.
func systemctlRestart(ctx context.Context, service string) error {
	command := exec.CommandContext(ctx, "systemctl", "restart", service)
	output, err := command.CombinedOutput()
	if err == nil {
		return nil
	}
	if said := bytes.TrimSpace(output); len(said) > 0 {
		err = errors.Join(err, errors.New(printable(string(said))))
	}
	return fmt.Errorf("cannot restart %s: %w", service, err)
}

func (p *program) tellNode(c *cli.Context, result node.Result) error {
	if p.json {
		return p.printJSON(result)
	}
	line := result.Config + " is as it should be already"
	switch {
	case result.Restarted:
		line = result.Config + " changed, and " + c.String(flagService) + " was restarted"
	case result.Changed:
		line = result.Config + " changed; containerd reads it when it is restarted"
	}
	_, err := fmt.Fprintln(p.out, line)
	return err
}
