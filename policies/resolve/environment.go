package resolve

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// PATH is where programs are looked for inside, as in docker's images.
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// The variables that describe the agent's own limits. A request may not set them: programs
// rely on them.
const (
	variableID        = "CLOVE_ID"
	variableName      = "CLOVE_NAME"
	variableMemory    = "CLOVE_MEMORY_BYTES"
	variableCPUs      = "CLOVE_CPUS"
	variableWorkspace = "CLOVE_WORKSPACE"
	variableSocket    = "CLOVE_AGENT_SOCKET" // only where there is one
)

// readEnvironment composes the whole environment: nothing of the caller's is in it that was
// not asked for by name.
func (b *builder) readEnvironment() error {
	env := map[string]string{
		// Directories of interpreters come first, so that their tools (pip, npm) are found
		// before those of the base system.
		"PATH": strings.Join(append(slices.Clone(b.path), PATH), ":"),
		"HOME": b.spec.User.Home,
		"LANG": "C.UTF-8",
	}
	// Only with a terminal, as docker does.
	if b.spec.Terminal {
		env["TERM"] = "xterm"
		if term, set := b.host.Lookup("TERM"); set && term != "" {
			env["TERM"] = term
		}
	}
	if b.spec.Kernel.HasModels() {
		maps.Copy(env, modelVariables)
	}
	if b.spec.Kernel.HasTools() {
		env["CLOVE_MCP_URL"] = agent.ToolURL
	}
	err := b.eachVariable(func(_, key, value string, hasValue bool) error {
		// A variable that the caller does not have either is left out, as docker does.
		if !hasValue {
			value, hasValue = b.host.Lookup(key)
		}
		if hasValue {
			env[key] = value
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Last, so that nothing can replace them.
	for key, value := range b.ownVariables() {
		env[key] = value
	}
	b.spec.Env = make([]string, 0, len(env))
	for key, value := range env {
		b.spec.Env = append(b.spec.Env, key+"="+value)
	}
	// Sorted, so that the same request gives the same spec.
	slices.Sort(b.spec.Env)
	return nil
}

// modelVariables lead clients of models to clove. A request may set others. The keys are
// there because clients refuse to start without one; they open nothing.
var modelVariables = map[string]string{
	"CLOVE_MODEL_URL":    agent.ModelURL,
	"OPENAI_BASE_URL":    agent.ModelURL + "/v1",
	"OPENAI_API_BASE":    agent.ModelURL + "/v1", // what it was called once
	"OPENAI_API_KEY":     "clove",
	"ANTHROPIC_BASE_URL": agent.ModelURL,
	"ANTHROPIC_API_KEY":  "clove",
	"NO_PROXY":           "127.0.0.1,localhost",
	"no_proxy":           "127.0.0.1,localhost",
}

// ownVariables are for programs that choose their memory and threads by their limits.
// Without them a program sees the whole host in /proc.
func (b *builder) ownVariables() map[string]string {
	cpus := float64(len(b.host.CPUs))
	if set, err := host.ParseCPUs(b.spec.Limits.CPUSet); err == nil {
		cpus = float64(len(set))
	}
	if limit := b.spec.Limits.CPUs; limit > 0 {
		cpus = min(cpus, limit)
	}
	own := map[string]string{
		variableID:        string(b.spec.ID),
		variableName:      b.spec.Name,
		variableMemory:    strconv.FormatInt(b.spec.Limits.MemoryBytes, 10),
		variableCPUs:      strconv.FormatFloat(cpus, 'f', -1, 64),
		variableWorkspace: agent.WorkspaceDir,
	}
	if b.spec.Kernel.HasSocket() {
		own[variableSocket] = agent.SocketPath
	}
	return own
}

// EachVariable calls set for each variable that was asked for, files first: KEY=VALUE, or
// without hasValue KEY, which means the caller's value. step names where it was given.
func (r Request) EachVariable(h host.Host, set func(step, key, value string, hasValue bool) error) error {
	return (&builder{asked: r, host: h}).eachVariable(set)
}

// eachVariable reads the policy first, and files before flags: of two values for one name the last wins, so -e
// overrides a file.
func (b *builder) eachVariable(set func(step, key, value string, hasValue bool) error) error {
	own := b.ownVariables()
	read := func(step, entry string) error {
		key, value, hasValue := strings.Cut(entry, "=")
		_, isOwn := own[key]
		switch {
		// A zero byte would end the string for execve(2). docker refuses blanks in a name,
		// too.
		case key == "" || strings.ContainsAny(key, " \t") || strings.ContainsRune(entry, 0):
			return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: fmt.Sprintf("%.64q is not a variable", entry), Hint: "write KEY=VALUE, or KEY for the caller's value"}
		case isOwn:
			return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: key + " is clove's own", Hint: "choose another name"}
		}
		return set(step, key, value, hasValue)
	}
	for _, entry := range slices.Concat(b.asked.Values[settings.EnvironmentSet], b.asked.Values[settings.EnvironmentPass]) {
		if err := read("--policy", entry); err != nil {
			return err
		}
	}
	for _, path := range b.asked.Values[settings.EnvFile] {
		if err := b.readEnvFile(path, read); err != nil {
			return err
		}
	}
	for _, entry := range b.asked.Values[settings.Env] {
		if err := read("--env", entry); err != nil {
			return err
		}
	}
	return nil
}

// envFileCeiling bounds what is read into memory. It is more than execve(2) could pass on.
const envFileCeiling = 16 << 20

// readEnvFile reads docker's format: one variable a line, # for comments. Quotes have no
// meaning, as there.
func (b *builder) readEnvFile(path string, read func(step, entry string) error) error {
	text, err := host.ReadBounded(b.host.Absolute(path), envFileCeiling)
	if err == nil && !utf8.Valid(text) {
		err = fmt.Errorf("%s is not UTF-8", path)
	}
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--env-file", Message: "cannot read variables",
			Hint: "name a text file with one KEY=VALUE a line", Err: err}
	}
	// Editors on Windows begin a file with it, and it would become part of the first name.
	const byteOrderMark = "\ufeff"
	// Lines are counted for the error: a file may have many.
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), byteOrderMark)) {
		number++
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := read(fmt.Sprintf("--%s %s:%d", "env-file", path, number), line); err != nil {
			return err
		}
	}
	return nil
}
