package oci

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

// modes leaves out the host's network: a mode only takes away from what the engine gave.
var modes = []string{agent.NetworkNone, agent.NetworkAllowlist, agent.NetworkPublic}

// readMode takes the words of `clove run --network`, but for host.
func readMode(value string, r *Rules) error {
	if !slices.Contains(modes, value) {
		return invalid("write one of "+strings.Join(modes, ", "), "%q is not a mode", value)
	}
	r.Network = value
	return nil
}

// readTargets reads a list of targets. Line breaks come from YAML's block strings, commas
// from command lines, and blanks are for Podman before version 5, which reads a comma in an
// annotation as the beginning of the next one.
func readTargets(value, source string, r *Rules) error {
	const hint = "write targets with commas or line breaks between them, for example pypi.org, 10.0.0.0/8:5432"
	fields := strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
	if len(fields) == 0 {
		return invalid(hint, "it names no target")
	}
	// An empty element is a mistake, for example a variable of a template that was not set.
	// Ignored, the list would be shorter than its author believes.
	for _, element := range strings.Split(strings.TrimRight(value, ", \n\t"), ",") {
		if strings.TrimSpace(element) == "" {
			return invalid(hint, "there is nothing between two commas")
		}
	}
	for _, field := range fields {
		target, err := egress.ParseTarget(field)
		if err != nil {
			return withHint(err, hint)
		}
		r.Egress = append(r.Egress, agent.EgressRule{Deny: source == AnnotationNetworkDeny, Target: target.String(), Source: source})
	}
	return nil
}

// withHint adds a hint to an error of package egress that has none.
func withHint(err error, hint string) error {
	var known *agent.Error
	if errors.As(err, &known) && known.Hint == "" {
		return invalid(hint, "%s", known.Message)
	}
	return err
}

// readSize refuses 0: to the kernel it would be a limit, to libcontainer it means none.
func readSize(value string, bytes *int64) error {
	n, err := agent.ParseSize(value)
	switch {
	case err != nil:
		return err
	case n == 0:
		return invalid("omit the annotation, or write a size such as 256M", "%q is no limit", value)
	}
	*bytes = n
	return nil
}

// readPids takes at least one process, and no more than the kernel has numbers for.
func readPids(value string, r *Rules) error {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil || n == 0 || n > agent.PidsCeiling {
		return invalid("write a whole number from 1 to "+strconv.Itoa(agent.PidsCeiling), "%q is not a number of processes", value)
	}
	r.Limits.Pids = int64(n)
	return nil
}

// readCPUs reads CPU seconds per second, as `clove run --cpus` does.
func readCPUs(value string, r *Rules) error {
	n, err := strconv.ParseFloat(value, 64)
	// ParseFloat also takes exponents, hexadecimal numbers, underscores and words.
	if err != nil || strings.Trim(value, "0123456789.") != "" || math.IsNaN(n) || n < agent.CPUsFloor || n > agent.CPUsCeiling {
		return invalid("write CPU seconds per second, for example 0.5 or 2; at least 0.01", "%q is not a number of CPUs", value)
	}
	r.Limits.CPUs = n
	return nil
}

// readRecord accepts one directory only, written in its canonical form, so that no ".." and
// no double slash leads elsewhere. The author of an annotation is not the node's
// administrator, and root writes the file.
func readRecord(value string, r *Rules) error {
	directory, name := filepath.Split(value)
	switch {
	case filepath.Clean(directory) != RecordsDir || value != filepath.Clean(value) || strings.HasPrefix(name, "."):
		return invalid("write the path of a file right in that directory", "%q is not in %s", value, RecordsDir)
	case !strings.HasSuffix(name, ".json") || strings.ContainsFunc(name, control):
		return invalid("a record is a file such as "+RecordsDir+"/job-17.json", "%q cannot be a record's name", name)
	}
	r.Record = value
	return nil
}

// control reports characters that would break lines of a listing or control a terminal.
func control(c rune) bool { return c < ' ' || c == 0x7f }
