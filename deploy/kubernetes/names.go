package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"clove.run/clove/agent"
)

// The syntax of names (RFC 1123's label and subdomain) and labels in Kubernetes.
var (
	dnsLabel   = pattern(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	dnsName    = pattern(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	labelWord  = pattern(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	secretWord = pattern(`^[-._a-zA-Z0-9]{1,253}$`)
	notInLabel = pattern(`[^a-z0-9]+`)
)

// pattern compiles at the first use: clove's package initialisation runs twice for each
// launch, and few runs are rendered.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// uniqueName is the stem and a hash of the whole run. The same run has the same name,
// so that applying it again changes nothing. A changed run gets another name, because
// Kubernetes does not let the pod template of an existing Job change.
func uniqueName(run Run) (string, error) {
	text, err := json.Marshal(run)
	if err != nil {
		return "", fmt.Errorf("cannot name the Job: %w", err)
	}
	sum := sha256.Sum256(text)
	stem := strings.Trim(notInLabel().ReplaceAllString(strings.ToLower(run.Stem), "-"), "-")
	if stem == "" {
		stem = "run"
	}
	return strings.TrimRight(stem[:min(len(stem), 40)], "-") + "-" + hex.EncodeToString(sum[:4]), nil
}

// checkNames checks what becomes a name in the cluster by the API's own rules, so that
// a mistake is reported with the flag that it came from.
func checkNames(run Run) error {
	for _, row := range []struct {
		flag, text string
		form       func() *regexp.Regexp
		hint       string
	}{
		{"--name", run.Spec.Name, dnsLabel, "use at most 63 small letters, digits and -"},
		{"--hostname", run.Spec.Hostname, dnsLabel, "use at most 63 small letters, digits and -"},
		{"--namespace", run.Namespace, dnsLabel, "use at most 63 small letters, digits and -"},
		{"--runtime-class", run.RuntimeClass, dnsName, "name a RuntimeClass of the cluster, for example clove"},
		{"--env-secret", run.Secret, dnsName, "name a Secret of the namespace, for example agent-keys"},
	} {
		if row.text != "" && !row.form().MatchString(row.text) {
			return refused(row.flag, row.hint, "%q is no name in Kubernetes", row.text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(run.Spec.Labels)) {
		prefix, name, prefixed := strings.Cut(key, "/")
		// A label's key may have a prefix, a DNS name before a slash. "x" stands for
		// one that is valid.
		if !prefixed {
			prefix, name = "x", key
		}
		value := run.Spec.Labels[key]
		if !labelWord().MatchString(name) || !dnsName().MatchString(prefix) || value != "" && !labelWord().MatchString(value) {
			return refused("--label", "use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends", "%q is no label in Kubernetes", key+"="+value)
		}
	}
	for _, v := range run.Variables {
		if v.IsSecret && !secretWord().MatchString(v.Name) {
			return refused("--env", "use letters, digits, '-', '_' and '.'", "%q is no key of a Secret", v.Name)
		}
	}
	return nil
}

// refused is an error for a flag of clove render.
func refused(step, hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: fmt.Sprintf(format, values...), Hint: hint}
}
