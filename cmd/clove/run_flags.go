package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// The flags of run, by name.
const (
	flagMemory       = "memory"
	flagMemorySwap   = "memory-swap"
	flagCPUs         = "cpus"
	flagCPUSet       = "cpuset-cpus"
	flagPids         = "pids-limit"
	flagUlimit       = "ulimit"
	flagCPUTime      = "cpu-time"
	flagTimeout      = "timeout"
	flagStopTimeout  = "stop-timeout"
	flagStopSignal   = "stop-signal"
	flagStartTimeout = "start-timeout"
	flagOutput       = "output-limit"
	flagDisk         = "disk"
	flagShm          = "shm-size"

	flagVolume    = "volume"
	flagMount     = "mount"
	flagTmpfs     = "tmpfs"
	flagReadOnly  = "read-only"
	flagExecute   = "allow-exec"
	flagRead      = "allow-read"
	flagRootfs    = "rootfs"
	flagWorkspace = "workspace"
	flagPython    = "python"

	flagEnv      = "env"
	flagEnvFile  = "env-file"
	flagEntry    = "entrypoint"
	flagWorkdir  = "workdir"
	flagUser     = "user"
	flagName     = "name"
	flagLabel    = "label"
	flagHostname = "hostname"

	flagNetwork        = "network"
	flagAllow          = "allow"
	flagDeny           = "deny"
	flagPublish        = "publish"
	flagHostPort       = "host-port"
	flagDNS            = "dns"
	flagAddHost        = "add-host"
	flagNetConnections = "net-connections"
	flagNetRate        = "net-rate"
	flagNetBytes       = "net-bytes"
	flagNetworkLog     = "network-log"
	flagExplainNetwork = "explain-network"

	flagAgentSocket = "agent-socket"
	flagGrant       = "grant"
	flagModel       = "model"
	flagModelSetup  = "model-setup"
	flagModelLog    = "model-log"
	flagBudget      = "budget"
	flagAtEnd       = "at-end"
	flagOnWarn      = "on-warn"
	flagOnEnd       = "on-end"
	flagOnDenial    = "on-denial"

	flagSeccomp = "seccomp"
	flagCapDrop = "cap-drop"
	flagOption  = "security-opt"
	flagPolicy  = "policy"
	flagShadow  = "policy-shadow"
	flagWeaken  = "allow-unenforced"

	flagLearn        = "learn"
	flagLearnNetwork = "learn-network"
	flagLearnReads   = "learn-reads"

	flagDetach   = "detach"
	flagRestart  = "restart"
	flagAfter    = "after"
	flagPriority = "priority"
	flagDelay    = "delay"
	flagSchedule = "schedule"
	flagKeep     = "keep-files"

	flagInteractive = "interactive"
	flagTTY         = "tty"
	flagRemove      = "rm"
	flagInit        = "init"
	flagIDFile      = "cidfile"
	flagResult      = "result"
	flagJSON        = "json"
	flagDebug       = "debug"
)

// The headings of run --help.
const (
	groupLimits   = "limits"
	groupFiles    = "files"
	groupIdentity = "identity and environment"
	groupNetwork  = "network"
	groupWalls    = "walls"
	groupShared   = "grants and budgets"
	groupDetached = "with cloved"
	groupResult   = "input and result"
)

// runFlags lists every flag of run, with the default that the standard level gives it.
// The help shows these; an empty flag is filled in by policies/build.
func runFlags() []cli.Flag {
	d := policies.Standard()
	return slices.Concat(limitFlags(d), fileFlags(), identityFlags(d), networkFlags(d), wallFlags(d), sharedFlags(), detachedFlags(), resultFlags())
}

// Sizes and times are strings, because urfave/cli's own numbers know no units.
func limitFlags(d agent.Spec) []cli.Flag {
	size := func(n int64) string { return units.BytesSize(float64(n)) }
	return []cli.Flag{
		value(groupLimits, flagMemory, "m", "memory of the whole agent, caches included", size(d.Limits.MemoryBytes)),
		value(groupLimits, flagMemorySwap, "", "memory and swap together; -1: any amount of swap", "as --memory: no swap"),
		value(groupLimits, flagCPUs, "", "CPU seconds per second, for example 0.5", "all"),
		value(groupLimits, flagCPUSet, "", "the CPUs that it may run on, for example 0-2,4", "all"),
		value(groupLimits, flagPids, "", "processes and threads at once", strconv.FormatInt(d.Limits.Pids, 10)),
		values(groupLimits, flagUlimit, "", "resource limit as NAME=SOFT[:HARD], -1 for none", "nofile=4096, core=0, nice=0, rtprio=0"),
		value(groupLimits, flagCPUTime, "", "CPU time of all its processes together", "no limit"),
		value(groupLimits, flagTimeout, "", "wall clock time, on a clock that sleep does not stop", "no limit"),
		value(groupLimits, flagStopTimeout, "", "time between the signal that asks it to end and KILL", d.Limits.StopGrace.String()),
		value(groupLimits, flagStopSignal, "", "signal that asks it to end", "TERM"),
		value(groupLimits, flagStartTimeout, "", "longest time that a step of the start may take without progress", d.StartBound().String()),
		value(groupLimits, flagOutput, "", "bytes of stdout and stderr together", "no limit"),
		value(groupLimits, flagDisk, "", "size of the writable layer", size(d.Limits.DiskBytes)),
		value(groupLimits, flagShm, "", "size of /dev/shm", size(d.Limits.ShmBytes)),
	}
}

func sharedFlags() []cli.Flag {
	return []cli.Flag{
		values(groupShared, flagModel, "", "let it call a model of models.yaml, NAME or glob[:provider-tools or :provider-state]; echo needs no key", ""),
		value(groupShared, flagModelSetup, "", "write the file that a client of models needs into its home: "+strings.Join(agent.ModelSetups(), ", "), ""),
		boolean(groupShared, flagModelLog, "", "keep what its calls of models say and get, for clove logs --models"),
		values(groupShared, flagGrant, "", "let it do one thing, KIND:PATTERN[:RIGHTS], for example state:/notes:ro", ""),
		values(groupShared, flagBudget, "", "limit what it spends, DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT]", ""),
		value(groupShared, flagAtEnd, "", "when a budget is spent: end, pause or refuse", "end"),
		value(groupShared, flagOnWarn, "", "when a budget reaches its warning: run this command as you, or post to this URL", ""),
		value(groupShared, flagOnEnd, "", "when a budget is spent: run this command as you, or post to this URL", ""),
		value(groupShared, flagOnDenial, "", "when it is refused something: deny, pause, end or end-after:N", "deny"),
		value(groupShared, flagNamespace, "", "path below you that its names and budgets belong to", ""),
		boolean(groupShared, flagAgentSocket, "", "give it a socket of its own, also without a grant"),
	}
}

// The defaults of these flags are rules and not values, so they are in words.
func fileFlags() []cli.Flag {
	return []cli.Flag{
		values(groupFiles, flagVolume, "v", "show a host path inside, SOURCE:TARGET[:ro]; its files change", ""),
		values(groupFiles, flagMount, "", "the same and --tmpfs in words, type=bind|tmpfs,source=DIR,target=DIR[,readonly]", ""),
		values(groupFiles, flagTmpfs, "", "private memory file system, TARGET[:size=SIZE,mode=MODE]", ""),
		boolean(groupFiles, flagReadOnly, "", "only /workspace, /tmp, /var/tmp and the home directory are writable"),
		values(groupFiles, flagExecute, "", "with --read-only: execute only this program, folder or pattern of paths inside, with its libraries", "any"),
		values(groupFiles, flagRead, "", "read only this file or folder inside, beside the agent's own places; /usr for programs", "all"),
		value(groupFiles, flagRootfs, "", "directory that replaces the host's base system", ""),
		value(groupFiles, flagWorkspace, "", "directory that appears, copy on write, at /workspace", "the script's folder"),
		value(groupFiles, flagPython, "", "Python interpreter, or a virtual environment", "python3 in PATH"),
	}
}

func identityFlags(d agent.Spec) []cli.Flag {
	return []cli.Flag{
		values(groupIdentity, flagEnv, "e", "set KEY=VALUE, or pass on the caller's KEY; kept in clear until rm", ""),
		values(groupIdentity, flagEnvFile, "", "read variables from a file", ""),
		value(groupIdentity, flagEntry, "", "program to run, with the words behind -- as its arguments", ""),
		value(groupIdentity, flagWorkdir, "w", "working directory inside", d.Dir),
		value(groupIdentity, flagUser, "u", "NAME|UID[:GID] inside; root is nobody outside", d.User.Name),
		value(groupIdentity, flagName, "", "name of the run", "made from the script's"),
		values(groupIdentity, flagLabel, "l", "label as KEY=VALUE, kept with the record", ""),
		value(groupIdentity, flagHostname, "", "host name inside", "the run's ID"),
	}
}

// The limits' defaults are the level's.
func networkFlags(d agent.Spec) []cli.Flag {
	number := strconv.Itoa
	return []cli.Flag{
		value(groupNetwork, flagNetwork, "", "none, allowlist, public (the internet, nothing private) or host (no isolation)", d.Network+"; allowlist with --allow"),
		values(groupNetwork, flagAllow, "", "reach NAME, *.NAME, ADDRESS, CIDR or GROUP, [tcp://|udp://]TARGET[:PORT[-PORT]]; ports 80 and 443 if none", ""),
		values(groupNetwork, flagDeny, "", "never reach TARGET, whatever --allow says; every port if none", ""),
		values(groupNetwork, flagPublish, "p", "let the host's clients reach a port of the agent, [IP:]HOSTPORT:PORT; 127.0.0.1 if no IP", ""),
		values(groupNetwork, flagHostPort, "", "let the agent reach this port of the host's 127.0.0.1 at its own 127.0.0.1", ""),
		values(groupNetwork, flagDNS, "", "name server to ask, ADDRESS[:PORT]", "the host's"),
		values(groupNetwork, flagAddHost, "", "line of its /etc/hosts, NAME:ADDRESS; what it may reach, --allow says", ""),
		value(groupNetwork, flagNetConnections, "", "connections open at once", number(d.Egress.Limits.Connections)),
		value(groupNetwork, flagNetRate, "", "new connections per second, twice as many in a burst", number(d.Egress.Limits.PerSecond)),
		value(groupNetwork, flagNetBytes, "", "bytes in and out together, over the whole run", "no limit"),
		value(groupNetwork, flagNetworkLog, "", "write each decision to this file as a line of JSON", ""),
		boolean(groupNetwork, flagExplainNetwork, "", "show the rules and where each came from, and run nothing"),
	}
}

// --security-opt and --cap-drop are docker's: most of what they ask for is always so.
func wallFlags(d agent.Spec) []cli.Flag {
	return []cli.Flag{
		value(groupWalls, flagSeccomp, "", "system call filter: standard, strict, minimal, unconfined or a FILE in docker's format", d.Seccomp.Profile),
		values(groupWalls, flagCapDrop, "", "take a capability from root inside, or ALL; any other user has none", ""),
		values(groupWalls, flagOption, "", "only no-new-privileges, which always applies", ""),
		value(groupWalls, flagPolicy, "", "what the defaults come from: a level (unrestricted, standard, sandboxed, readonly, minimal), a name or a file of clove policy", d.Policy.Name),
		value(groupWalls, flagShadow, "", "a stricter one that is decided beside it and refuses nothing: the record has what it would have refused", "none"),
		value(groupWalls, flagLearn, "", "write the smallest policy for what this run uses to NAME.yaml, and what was seen beside it", ""),
		value(groupWalls, flagLearnNetwork, "", "targets that the policy refuses while --learn watches: ask, allow (the internet) or deny", "deny"),
		boolean(groupWalls, flagLearnReads, "", "with --learn: the policy names what may be read, too"),
		values(groupWalls, flagWeaken, "", "run although this host cannot enforce this control; it is recorded", ""),
	}
}

func detachedFlags() []cli.Flag {
	return []cli.Flag{
		boolean(groupDetached, flagDetach, "d", "run it under cloved, print its ID and return"),
		value(groupDetached, flagRestart, "", "when it has ended: never, on-failure[:MAX] or always[:MAX]", "never"),
		value(groupDetached, flagSchedule, "", "start it at each time of a cron expression, as \"0 3 * * *\" or @hourly; CRON_TZ=ZONE before it", ""),
		boolean(groupDetached, flagKeep, "", "with --schedule: continue with the files of the previous start"),
		values(groupDetached, flagAfter, "", "start only when the run with this name has started", ""),
		value(groupDetached, flagPriority, "", "among those that wait for memory, higher goes first", "0"),
		value(groupDetached, flagDelay, "", "start it after this time", "at once"),
	}
}

// --init is docker's, and always on.
func resultFlags() []cli.Flag {
	return []cli.Flag{
		boolean(groupResult, flagInteractive, "i", "with -d: keep stdin open for clove attach; else it is always passed on"),
		boolean(groupResult, flagTTY, "t", "give the agent a terminal"),
		boolean(groupResult, flagClipboard, "", clipboardUsage),
		boolean(groupResult, flagRemove, "", "keep neither record nor layer"),
		boolean(groupResult, flagInit, "", "accepted for docker's users: every sandbox has an init process"),
		value(groupResult, flagIDFile, "", "write the ID to this file, which must not exist", ""),
		value(groupResult, flagResult, "", "write the exit record to this file", ""),
		boolean(groupResult, flagJSON, "", "write the exit record, or {\"error\":…}, to stderr as one line of JSON"),
		boolean(groupResult, flagDebug, "", "show the plan and each step's time on stderr"),
	}
}

// aliases avoids an empty alias, which urfave/cli would show as a lone dash.
func aliases(short string) []string {
	if short == "" {
		return nil
	}
	return []string{short}
}

// value is a flag with one value. The default is only text for the help: the flag
// itself is empty unless it is given.
func value(group, name, short, usage, standard string) cli.Flag {
	return &cli.StringFlag{Category: group, Name: name, Aliases: aliases(short), Usage: usage, DefaultText: standard}
}

// values is a flag that may be repeated.
func values(group, name, short, usage, standard string) cli.Flag {
	// KeepSpace: the blanks of an environment variable are its own.
	return &cli.StringSliceFlag{Category: group, Name: name, Aliases: aliases(short), Usage: usage, DefaultText: standard, KeepSpace: true}
}

// boolean is a switch. Its default is not shown: it is always off.
func boolean(group, name, short, usage string) cli.Flag {
	return &cli.BoolFlag{Category: group, Name: name, Aliases: aliases(short), Usage: usage, DisableDefaultText: true}
}

// jsonFlag is --json of commands that list something.
func jsonFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: flagJSON, Usage: usage, DisableDefaultText: true}
}

// refuseEmpty rejects flags with an empty value: --timeout "$T" with T unset must not
// mean a run without a time limit.
func refuseEmpty(flags []cli.Flag, given *cli.Context) error {
	for _, f := range flags {
		name := f.Names()[0]
		if !given.IsSet(name) {
			continue
		}
		empty := false
		switch f.(type) {
		case *cli.StringFlag:
			empty = given.String(name) == ""
		case *cli.StringSliceFlag:
			empty = slices.Contains(given.StringSlice(name), "")
		}
		if empty {
			return invalid(name, "give a value, or omit the flag", "its value is empty")
		}
	}
	return nil
}
