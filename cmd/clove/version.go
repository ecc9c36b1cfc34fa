package main

import (
	"fmt"
	goruntime "runtime"

	"github.com/urfave/cli/v2"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "0.0.0-dev"

func versionCommand() command {
	return command{
		task: "administer", usage: "show clove's version",
		verbs: []verb{{line: "clove version", act: prints(showVersion)}},
	}
}

func showVersion(s *screen, c *cli.Context) error {
	_, err := fmt.Fprintf(s.out, "clove %s (%s, %s/%s)\n", version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
	return err
}
