package seccomp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Limits of a document. docker's own default has 13 kB and about 450 names.
const (
	MaxDocumentBytes = 1 << 20
	// runc hands the kernel the program's length as 16 bits, so a program of
	// more than 65535 instructions would be cut short silently (the kernel
	// refuses 4097 to 65535). libseccomp makes fewer than ten of each name or
	// argument, and fewer than four of each pair of overlapping rules.
	maxComparisons = 4096 // names plus arguments
	// maxOverlap bounds, over all calls, what libseccomp's tree of comparisons
	// that are not plain equality can grow to: rules to the power of arguments.
	// 16 rules of three inequalities, 4096, take it 14 seconds (measured).
	maxOverlap  = 2048
	maxErrno    = 4095 // MAX_ERRNO of linux/err.h: seccomp caps larger values
	maxArgument = 5    // system calls have six; runc indexes an array of six
)

// Parse reads a profile in docker's JSON format. Rules that depend on
// capabilities are resolved for a process without any, since no agent holds
// one on the host; architectures and kernel versions are this machine's.
//
// Unlike docker it refuses fields that the format does not have, since a
// misspelt one would change the filter silently, and rules that runc or
// libseccomp would read otherwise than they are written.
func Parse(document []byte) (*specs.LinuxSeccomp, error) {
	profile, err := parse(document)
	if err != nil {
		return nil, fmt.Errorf("cannot use seccomp profile: %w", err)
	}
	return profile, nil
}

func parse(document []byte) (*specs.LinuxSeccomp, error) {
	if len(document) > MaxDocumentBytes {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(document), MaxDocumentBytes)
	}
	var written moby.Seccomp
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&written); err != nil {
		return nil, fmt.Errorf("it is not a profile in docker's JSON format: %w", err)
	}
	if err := checkWritten(&written); err != nil {
		return nil, err
	}
	// LoadProfile reads the document again: it resolves includes and excludes.
	profile, err := moby.LoadProfile(string(document), withoutCapabilities())
	if err != nil {
		return nil, err
	}
	if err := check(profile); err != nil {
		return nil, err
	}
	if profile.Flags == nil {
		profile.Flags = []specs.LinuxSeccompFlag{} // see builtin.build
	}
	return profile, nil
}

// checkWritten refuses what would be lost or would panic when the rules are
// resolved.
func checkWritten(document *moby.Seccomp) error {
	if document.DefaultAction == "" {
		return errors.New("defaultAction is missing: without it nothing would be filtered")
	}
	for i, rule := range document.Syscalls {
		if rule == nil {
			return fmt.Errorf("rule %d is null", i+1)
		}
		//lint:ignore SA1019 old documents have it
		if rule.Name == "" && len(rule.Names) == 0 {
			return fmt.Errorf("rule %d names no system call", i+1)
		}
	}
	return nil
}
