package convert

import (
	"fmt"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/rlimits"
)

// Process converts a process of config.json for libcontainer. Streams, a terminal, and
// whether it is the container's first process are left to the caller. An error names the
// resource or CPU list that is unknown, in runc's words.
func Process(p *specs.Process) (*libcontainer.Process, error) {
	limits, err := resourceLimits(p.Rlimits)
	if err != nil {
		return nil, err
	}
	affinity, err := configs.ConvertCPUAffinity(p.ExecCPUAffinity)
	if err != nil {
		return nil, err
	}
	process := &libcontainer.Process{
		Args: p.Args, Env: p.Env, Cwd: p.Cwd,
		UID: int(p.User.UID), GID: int(p.User.GID),
		Label: p.SelinuxLabel, AppArmorProfile: p.ApparmorProfile,
		NoNewPrivileges: &p.NoNewPrivileges,
		Rlimits:         limits,
		Scheduler:       p.Scheduler, IOPriority: p.IOPriority, CPUAffinity: affinity,
	}
	if size := p.ConsoleSize; size != nil {
		process.ConsoleWidth, process.ConsoleHeight = uint16(size.Width), uint16(size.Height)
	}
	if c := p.Capabilities; c != nil {
		process.Capabilities = &configs.Capabilities{Bounding: c.Bounding, Effective: c.Effective,
			Inheritable: c.Inheritable, Permitted: c.Permitted, Ambient: c.Ambient}
	}
	for _, group := range p.User.AdditionalGids {
		process.AdditionalGroups = append(process.AdditionalGroups, int(group))
	}
	return process, nil
}

// resourceLimits uses the names of the specification (RLIMIT_NOFILE), which rlimits maps to
// numbers.
func resourceLimits(limits []specs.POSIXRlimit) ([]configs.Rlimit, error) {
	var converted []configs.Rlimit
	for _, l := range limits {
		resource, known := rlimits.OCIResource(l.Type)
		if !known {
			return nil, fmt.Errorf("wrong rlimit value: %s", l.Type)
		}
		converted = append(converted, configs.Rlimit{Type: resource, Soft: l.Soft, Hard: l.Hard})
	}
	return converted, nil
}
