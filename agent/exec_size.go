package agent

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// The limits of execve(2), from fs/exec.c: one string has at most 32 pages, and
// all of them with their pointers a quarter of the stack limit, at most 3/4 of
// 8 MiB and at least 32 pages.
const (
	execStringBytes  = 32 * 4096
	execCeilingBytes = 6 << 20
	pointerBytes     = 8
)

// StackUnknown is a stack limit that only the process that starts the run has: the ceiling applies.
const StackUnknown = math.MaxUint64

// StackBytes is the agent's soft limit of the stack; inherited, which is that of the process that
// starts the run, where the run has none of its own.
func (l Limits) StackBytes(inherited uint64) uint64 {
	for _, limit := range l.Rlimits {
		if limit.Name == "stack" {
			return limit.Soft // clove-init sets rlimits before execve(2)
		}
	}
	return inherited
}

// CheckExecSize rejects arguments and environment that execve(2) would refuse with E2BIG
// under a stack limit in bytes, and names the largest.
func CheckExecSize(command, env []string, stack uint64) error {
	allowed := int(max(min(stack/4, execCeilingBytes), execStringBytes))
	total, biggest := 0, ""
	if len(command) > 0 {
		total = len(command[0]) + 1 // the name of the program, which the kernel copies beside the arguments
	}
	for _, text := range slices.Concat(command, env) {
		total += len(text) + 1 + pointerBytes
		if len(text) > len(biggest) {
			biggest = text
		}
	}
	switch {
	// The kernel's limit includes the zero byte at the end.
	case len(biggest) >= execStringBytes:
		return wrong("", "pass it in a file of the workspace", "%s has %d bytes, and the kernel takes at most %d in one string",
			describe(biggest), len(biggest), execStringBytes-1)
	case total > allowed:
		return wrong("", "pass large values in files of the workspace; the largest is "+describe(biggest),
			"arguments and environment have %d bytes, and the kernel takes at most %d", total, allowed)
	}
	return nil
}

// describe names a variable or argument without showing its value, which may
// be a secret.
func describe(text string) string {
	if key, _, isVariable := strings.Cut(text, "="); isVariable && len(key) < 200 {
		return "variable " + shorten(key)
	}
	return "argument " + strconv.Quote(shorten(text))
}

// shorten keeps a message readable when the mistake has megabytes. The cut may be in the
// middle of a character, which is dropped.
func shorten(text string) string {
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}
