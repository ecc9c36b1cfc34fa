package seccomp

import (
	"errors"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Stack is how a profile is loaded.
type Stack struct {
	// Sandbox is for every process of the sandbox, clove-init included; nil is no filter.
	Sandbox *specs.LinuxSeccomp
	// Agent is for the agent's own processes, on top of Sandbox; nil: Sandbox is all.
	Agent *specs.LinuxSeccomp
}

// StackOf divides a checked profile. One under which clove-init can work is loaded for
// everything. Any other is loaded by the process that becomes the agent, just before its
// execve, on top of strict for minimal and of standard for a document.
func StackOf(name string, profile *specs.LinuxSeccomp) (Stack, error) {
	below := Standard
	switch {
	case name == Minimal:
		below = Strict
	case profile == nil || name == Standard || name == Strict || servesInit(profile):
		return Stack{Sandbox: profile}, nil
	}
	if verdictOf(profile, "execve") == Refused {
		return Stack{}, errors.New("cannot load seccomp profile: it refuses execve, so no command can be executed under it")
	}
	b, err := find(below)
	if err != nil {
		return Stack{}, err
	}
	sandbox, err := b.withFilters().build()
	return Stack{Sandbox: sandbox, Agent: profile}, err
}

// initCalls are calls without which clove-init cannot start the agent.
var initCalls = []string{"socketpair", "sendmsg", "recvmsg", "eventfd2", "epoll_create1", "epoll_ctl", "epoll_pwait",
	"setsid", "prctl", "capset", "setgroups", "setresgid", "setresuid", "close_range"}

// servesInit reports whether clove-init can make the agent's process under profile.
func servesInit(profile *specs.LinuxSeccomp) bool {
	// The flags with which Go's syscall package forks.
	fork := [6]uint64{unix.CLONE_VFORK | unix.CLONE_VM | uint64(unix.SIGCHLD)}
	return Decide(profile, "clone", fork).Allowed() &&
		!slices.ContainsFunc(initCalls, func(call string) bool { return verdictOf(profile, call) == Refused })
}

// withFilters also lets a process restrict itself by one more filter, through prctl only. On
// top lies a filter of the agent's: minimal refuses it again, a document does what it says.
func (b builtin) withFilters() builtin {
	b.conditions = narrow(b.conditions, []condition{{name: "prctl", group: "kernel-programs",
		allowed: "every option",
		reason:  "clove-init loads the agent's own filter",
		accept:  append(exceptBelow(0, optionBits, 0, nil), oneOf(0, numberedByName...)...)}}, nil)
	return b
}
