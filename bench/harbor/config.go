package harbor

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// config is task.toml. Keys that are no part of a task's run are read into any.
type config struct {
	Version       any           `toml:"version"`
	SchemaVersion any           `toml:"schema_version"`
	Source        any           `toml:"source"`
	Task          any           `toml:"task"`
	Metadata      any           `toml:"metadata"`
	Artifacts     []any         `toml:"artifacts"`
	Steps         []any         `toml:"steps"`
	StepRewards   any           `toml:"multi_step_reward_strategy"`
	Verifier      verifier      `toml:"verifier"`
	Agent         phase         `toml:"agent"`
	Environment   environment   `toml:"environment"`
	Solution      solutionTable `toml:"solution"`
}

type solutionTable struct {
	Env map[string]string `toml:"env"`
}

type phase struct {
	Timeout float64  `toml:"timeout_sec"`
	User    any      `toml:"user"`
	Mode    string   `toml:"network_mode"`
	Hosts   []string `toml:"allowed_hosts"`
}

type verifier struct {
	phase
	Env         map[string]string `toml:"env"`
	Separate    string            `toml:"environment_mode"`
	Environment any               `toml:"environment"`
}

type environment struct {
	Timeout     float64           `toml:"build_timeout_sec"`
	Image       string            `toml:"docker_image"`
	OS          string            `toml:"os"`
	CPUs        float64           `toml:"cpus"`
	MemoryMB    int64             `toml:"memory_mb"`
	Memory      string            `toml:"memory"`
	StorageMB   int64             `toml:"storage_mb"`
	Storage     string            `toml:"storage"`
	GPUs        int               `toml:"gpus"`
	GPUTypes    []string          `toml:"gpu_types"`
	TPU         any               `toml:"tpu"`
	MCP         []any             `toml:"mcp_servers"`
	Env         map[string]string `toml:"env"`
	Skills      string            `toml:"skills_dir"`
	Healthcheck any               `toml:"healthcheck"`
	Workdir     string            `toml:"workdir"`
	Internet    *bool             `toml:"allow_internet"`
	Mode        string            `toml:"network_mode"`
	Hosts       []string          `toml:"allowed_hosts"`
}

// readConfig refuses keys that it does not know: they may change what the task is.
func readConfig(text []byte) (config, error) {
	var c config
	err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&c)
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		line, _ := unknown.Errors[0].Position()
		return c, refused("task.toml", line, "there is no key %q here", strings.Join(unknown.Errors[0].Key(), "."))
	case errors.As(err, &wrong):
		line, _ := wrong.Position()
		return c, refused("task.toml", line, "%s", strings.TrimPrefix(wrong.Error(), "toml: "))
	case err != nil:
		return c, refused("task.toml", 0, "%v", err)
	}
	return c, c.check()
}

// check refuses what has no counterpart.
func (c config) check() error {
	for _, no := range []struct {
		there bool
		what  string
	}{
		{len(c.Steps) > 0 || c.StepRewards != nil, "it has steps"},
		{c.Verifier.Environment != nil || c.Verifier.Separate != "" && c.Verifier.Separate != "shared", "its verifier has an environment of its own"},
		{c.Environment.OS != "" && !strings.EqualFold(c.Environment.OS, "linux"), "it is for " + c.Environment.OS},
		{c.Environment.GPUs > 0, "it needs a GPU"},
		{c.Environment.TPU != nil, "it needs a TPU"},
		{len(c.Environment.MCP) > 0, "it has mcp_servers, which run beside the agent"},
		{c.Environment.Skills != "", "it has a skills_dir for Harbor's own agents"},
		{c.Environment.Healthcheck != nil, "it has a healthcheck of a service, and no process outlives a set-up"},
	} {
		if no.there {
			return refused("task.toml", 0, "%s", no.what)
		}
	}
	for _, mode := range []string{c.Environment.Mode, c.Agent.Mode, c.Verifier.Mode} {
		if !slices.Contains([]string{"", modePublic, modeNone, modeList}, mode) {
			return refused("task.toml", 0, "network_mode: %.64q is unknown", mode)
		}
	}
	return nil
}

// Harbor's words for networks.
const (
	modePublic = "public"
	modeNone   = "no-network"
	modeList   = "allowlist"
)

// network is what a phase is to reach.
func (c config) network(p phase) (mode string, hosts []string) {
	if p.Mode != "" {
		return p.Mode, p.Hosts
	}
	mode = c.Environment.Mode
	if mode == "" && c.Environment.Internet != nil && !*c.Environment.Internet {
		mode = modeNone
	}
	return cmp.Or(mode, modePublic), c.Environment.Hosts
}

// variablePattern is what Harbor replaces by a variable of its caller's.
const variablePattern = `\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`

// variables replaces what has a default, and refuses what the caller would have to give.
func variables(table string, of map[string]string) (map[string]string, error) {
	found := map[string]string{}
	pattern := regexp.MustCompile(variablePattern)
	for _, key := range slices.Sorted(maps.Keys(of)) {
		value := of[key]
		for _, match := range pattern.FindAllStringSubmatch(value, -1) {
			if match[2] == "" {
				return nil, refused("task.toml", 0, "%s.%s needs the caller's variable %s", table, key, match[1])
			}
		}
		found[key] = pattern.ReplaceAllString(value, "$3")
	}
	return found, nil
}
