package main

import (
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/imports"
)

const flagSkip = "skip"

// importFlags are those of clove policy import.
func importFlags() []cli.Flag {
	var systems []string
	for _, system := range imports.Systems {
		systems = append(systems, string(system))
	}
	return []cli.Flag{
		value("", flagName, "", "import: name of the document", "the file's, without its ending"),
		value("", flagFrom, "", "import: whose settings they are: "+strings.Join(systems, ", "), "recognised by the content"),
		values("", flagSkip, "", "import: a setting to leave out, as the error names it; may be repeated", ""),
	}
}

// importSettings prints the document that the settings of another system become.
func (p policyVerbs) importSettings(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	path := h.Absolute(c.Args().Get(1))
	file := imports.File{Path: path, Name: c.String(flagName), System: imports.System(c.String(flagFrom)), Skip: c.StringSlice(flagSkip)}
	if file.System != "" && !file.System.Known() {
		return invalid(flagFrom, "clove policy --help lists them", "there is no system %.64q", file.System)
	}
	if file.Name == "" {
		file.Name = strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), ".")
	}
	if file.Text, err = host.ReadBounded(path, imports.MostBytes); err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Message: "cannot read the settings", Hint: "name the file of another system", Err: err}
	}
	for _, variable := range h.Environ {
		if home, found := strings.CutPrefix(variable, "HOME="); found && filepath.IsAbs(home) {
			file.Home = filepath.Clean(home)
		}
	}
	text, err := imports.Import(file)
	if err != nil {
		return inFile(path, err)
	}
	_, err = p.out.Write(text)
	return err
}
