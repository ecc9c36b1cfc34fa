package seccomp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Limits of a document. docker's default has 13 kB and about 450 names.
const (
	MaxDocumentBytes = 1 << 20
	// maxComparisons bounds names plus arguments. libseccomp generates fewer than ten
	// instructions for each, and fewer than four for each pair of overlapping rules. runc
	// passes the program's length as 16 bits, so a program above 65535 instructions would
	// be truncated silently; the kernel itself rejects 4097 to 65535.
	maxComparisons = 4096
	// maxOverlap bounds, over all calls, what libseccomp's tree of comparisons
	// that are not plain equality can grow to: rules to the power of arguments.
	// 16 rules of three inequalities, 4096, take it 14 seconds (measured).
	maxOverlap  = 2048
	maxErrno    = 4095 // MAX_ERRNO of linux/err.h: seccomp caps larger values
	maxArgument = 5    // system calls have six; runc indexes an array of six
)

// Parse parses a profile in docker's JSON format. Rules that depend on capabilities are
// resolved for a process without any, because no agent has a capability on the host.
// Architectures and kernel versions are those of this machine.
//
// Unlike docker it rejects unknown fields, because a misspelt one would change the filter
// silently, and rules that runc or libseccomp would enforce differently than written.
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
	// LoadProfile parses the document again, because it resolves includes and excludes.
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

// checkWritten rejects what LoadProfile would ignore, or would panic on.
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
