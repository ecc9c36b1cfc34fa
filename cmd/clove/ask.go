package main

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/loop/order"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
	"clove.run/clove/runtime"
)

const (
	askName  = "ask"
	chatName = "chat"

	flagInstruct   = "instructions"
	flagIterations = "max-iterations"
	flagContext    = "context"
)

const groupLoop = "the loop"

// loopProgram is installed beside clove's other programs.
const loopProgram = "clove-loop"

func askCommand() command {
	return command{
		task: "run", usage: "have a model do a task in a sandbox",
		verbs: []verb{{line: "clove ask [flags of run] AGENT.yaml PROMPT\nclove ask --model NAME [flags of run] PROMPT", act: of(launcher.ask), free: true}},
		description: "clove's own agent loop: the model works with tools (exec, read_file, write_file, edit, list) on a copy of\n" +
			"this folder until it is done. The answer is on stdout, what it does on stderr. The folder stays as it is until\n" +
			"clove apply.\n\n" +
			"Exit status: 0 done; 1 the conversation cannot be kept; 2 a mistake in the order; 3 all iterations are used; 4 the\n" +
			"model cannot be called, or its answer is too large; 5 a budget refuses the call; 130 interrupted. Else as clove run.",
		flags: loopFlags(),
	}
}

func chatCommand() command {
	return command{
		task: "run", usage: "talk with a model that works in a sandbox",
		verbs: []verb{{line: "clove chat [flags of run] AGENT.yaml\nclove chat --model NAME [flags of run]", act: of(launcher.chat), free: true}},
		description: "As clove ask, with a prompt a line. Ctrl-C interrupts the current answer. /tools lists the tools, /cost says what was\n" +
			"used, /quit or the end of the input ends it.",
		flags: loopFlags(),
	}
}

// loopFlags are run's, but for those that say what runs, and the loop's own.
func loopFlags() []cli.Flag {
	theirs := slices.DeleteFunc(runFlags(), func(f cli.Flag) bool {
		return slices.Contains([]string{flagEntry, settings.Python, settings.ModelSetup}, f.Names()[0])
	})
	return append(theirs,
		value(groupLoop, flagInstruct, "", "what the model is told before the prompt", ""),
		value(groupLoop, flagIterations, "", "answers of the model for one prompt, at most", strconv.Itoa(order.Iterations)),
		value(groupLoop, flagContext, "", "tokens of the conversation before the model sums it up", strconv.Itoa(order.Context)))
}

func (p launcher) ask(c *cli.Context) error  { return p.performLoop(c, false) }
func (p launcher) chat(c *cli.Context) error { return p.performLoop(c, true) }

// performLoop runs the loop.
func (p launcher) performLoop(c *cli.Context, chat bool) error {
	specOf := func(c *cli.Context, h host.Host, id agent.ID) (agent.Spec, error) { return p.loopSpec(c, h, id, chat) }
	return p.performShowing(c, specOf, func(agent.Spec) bool { return true })
}

// performShowing is perform for an agent whose changes are shown at the end if its spec asks for that.
func (p launcher) performShowing(c *cli.Context, specOf func(*cli.Context, host.Host, agent.ID) (agent.Spec, error), shown func(agent.Spec) bool) error {
	var started agent.Spec
	err := p.perform(c, func(c *cli.Context, h host.Host, id agent.ID) (spec agent.Spec, err error) {
		spec, err = specOf(c, h, id)
		if err == nil {
			started = spec
		}
		return spec, err
	})
	if started.Name != "" && shown(started) && !started.Detached && !p.json {
		p.reportChanges(c, started)
	}
	return err
}

// loopSpec is runSpec for the loop. The first word can be a manifest, whose model works then.
func (p launcher) loopSpec(c *cli.Context, h host.Host, id agent.ID, chat bool) (agent.Spec, error) {
	file, words := "", c.Args().Slice()
	// The only word beside --model is a prompt, which may end in a file's name.
	if len(words) > 0 && resolve.NamesManifest(words[0], h) && (chat || len(words) > 1 || !c.IsSet(settings.Model)) {
		file, words = words[0], words[1:]
	}
	o, err := orderOf(c, file, words, chat)
	if err == nil {
		err = checkSwitches(c)
	}
	if err != nil {
		return refusedSpec(id), err
	}
	request := requestOf(c)
	if chat && isTerminal(p.in) && isTerminal(p.out) {
		request.Set(settings.TTY, "true")
	}
	if file != "" {
		request.Script, request.Args = file, words
		return p.resolved(c, request, &o, h, id)
	}
	if err := runLoop(&request, o, h); err != nil {
		return refusedSpec(id), err
	}
	return p.resolved(c, request, &o, h, id)
}

// runLoop makes the request one for the loop, on a copy of the caller's folder.
func runLoop(request *resolve.Request, o order.Order, h host.Host) error {
	programs, err := runtime.Programs()
	if err != nil {
		return err
	}
	program := filepath.Join(programs, loopProgram)
	if !host.IsProgram(program) {
		return &agent.Error{Kind: agent.KindNotFound, Step: askName, Message: program + " is not there", Hint: "build it with `make build`, or install clove's programs in one directory"}
	}
	if !request.Has(settings.Workspace) {
		if err := request.ShowFolder(h); err != nil {
			return err
		}
	}
	return request.RunLoop(program, o)
}

// orderOf reads what the loop is to do. words are behind the file, which is empty without a
// manifest.
func orderOf(c *cli.Context, file string, words []string, chat bool) (o order.Order, err error) {
	o = order.Order{Instructions: c.String(flagInstruct), Chat: chat}
	models := c.StringSlice(settings.Model)
	if len(models) > 0 {
		o.Model = agent.NamedModel(models[0])
	}
	if o.Model == "" && file == "" {
		return o, invalid(settings.Model, "clove models list shows what there is; echo needs no key", "name the model that works, without *")
	}
	for _, number := range []struct {
		flag string
		to   *int
	}{{flagIterations, &o.Iterations}, {flagContext, &o.Context}} {
		if text := c.String(number.flag); text != "" {
			if *number.to, err = strconv.Atoi(text); err != nil || *number.to <= 0 {
				return o, invalid(number.flag, "write a number, for example 20", "%q is no number above 0", text)
			}
		}
	}
	switch {
	case chat && len(words) > 0:
		return o, invalid("", "clove ask asks once", "a chat takes its prompts from standard input")
	case !chat && len(words) != 1 && file != "":
		return o, invalid("", `clove ask `+file+` "what to do"`, "it takes one prompt, not %d words", len(words))
	case !chat && len(words) != 1:
		return o, invalid("", `clove ask --model `+o.Model+` "what to do"`, "it takes one prompt, not %d words", len(words))
	case !chat:
		o.Prompt = words[0]
	}
	return o, nil
}

// reportChanges says what the agent changed in the workspace, and how that is written back. A run
// that was not started, or has no layer, has changed nothing.
func (p launcher) reportChanges(c *cli.Context, spec agent.Spec) {
	changes, err := (workspace(p)).changes(c, string(spec.ID), "", nil)
	if err != nil {
		return
	}
	count := 0
	for _, change := range changes {
		if strings.HasPrefix(path.Clean(change.Path), agent.WorkspaceDir+"/") {
			count++
		}
	}
	if count == 0 {
		return
	}
	p.say("clove", cyan, fmt.Sprintf("the agent changed %s in its copy of %s", filesOf(count), printable(spec.Files.Workspace)))
	p.say("hint", cyan, fmt.Sprintf("clove diff %[1]s lists what it changed; clove apply %[1]s writes it back", shown(agent.Run{Spec: spec}.Name())))
}

func filesOf(n int) string {
	if n == 1 {
		return "1 file"
	}
	return strconv.Itoa(n) + " files"
}
