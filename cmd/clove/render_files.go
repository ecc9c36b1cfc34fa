package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/deploy/kubernetes"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// clusterFiles reads the files for the workspace: the script, or everything in the
// directory that --workspace names.
func (r *clusterRequest) clusterFiles() ([]kubernetes.File, error) {
	dir := r.spec.Files.Workspace
	if dir == "" {
		return nil, nil
	}
	if r.asked.Has(settings.Workspace) {
		return readTree(dir)
	}
	// The script is the last part of the command before its arguments.
	script := r.spec.Command[len(r.spec.Command)-1-len(r.asked.Args)]
	inside := strings.TrimPrefix(script, agent.WorkspaceDir+"/")
	text, err := host.ReadBounded(filepath.Join(dir, inside), kubernetes.MaxContentBytes)
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "script", Message: "cannot put " + r.asked.Script + " into a ConfigMap",
			Hint: "build an image that holds it: clove render kubernetes --image IMAGE -- COMMAND", Err: err}
	}
	return []kubernetes.File{{Path: inside, Text: text}}, nil
}

// readTree reads all files below dir in a fixed order. It stops at what a ConfigMap
// cannot hold: a link would lead somewhere else in the pod.
func readTree(dir string) ([]kubernetes.File, error) {
	var files []kubernetes.File
	left := int64(kubernetes.MaxContentBytes)
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			return invalid(settings.Workspace, "remove it, or build an image that has it", "%s is neither a file nor a directory, and a ConfigMap holds files", relative)
		}
		// Bounded by what is left of the ConfigMap, so that a large tree is not read into
		// memory first.
		text, err := host.ReadBounded(name, left)
		if err != nil {
			return &agent.Error{Kind: agent.KindInvalid, Step: "--" + settings.Workspace, Message: "cannot put all of it into a ConfigMap, which holds 1 MiB",
				Hint: "leave away what the agent does not need, or build an image that has it", Err: err}
		}
		left -= int64(len(text))
		files = append(files, kubernetes.File{Path: path.Clean(filepath.ToSlash(relative)), Text: text})
		return nil
	})
	return files, agent.Failed("--"+settings.Workspace, err)
}

// countEntries is the number of names in a directory, 0 for one that cannot be read: it
// is only mentioned.
func countEntries(dir string) int {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	return len(entries)
}

// clusterVariables are the variables that were asked for. A value of the caller's
// environment is never written into a Job: a variable without a value comes from the
// Secret.
func (r *clusterRequest) clusterVariables() ([]kubernetes.Variable, error) {
	set := map[string]kubernetes.Variable{}
	keep := func(step, key, value string, hasValue bool) error {
		switch {
		// All users with the right to read Jobs could read it.
		case hasValue && namesSecret(key):
			return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: key + " looks like a secret, and its value would stand in the Job",
				Hint: "write -e " + key + " and --env-secret NAME, after kubectl create secret generic NAME --from-literal=" + key + "=…"}
		case !hasValue && r.flags.String(flagSecret) == "":
			return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: key + " has no value, and the caller's is not put into a Job",
				Hint: "name the Secret that has it with --env-secret NAME, or write -e " + key + "=VALUE"}
		}
		set[key] = kubernetes.Variable{Name: key, Value: value, IsSecret: !hasValue}
		return nil
	}
	if err := r.asked.EachVariable(r.host, keep); err != nil {
		return nil, err
	}
	all := make([]kubernetes.Variable, 0, len(set))
	for _, v := range set {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b kubernetes.Variable) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// secretEndings are endings of names that people give to secrets.
var secretEndings = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS",
	"APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "SECRET_KEY"}

// namesSecret compares whole parts at the end: MONKEY is no KEY.
func namesSecret(key string) bool {
	upper := "_" + strings.ToUpper(key)
	return slices.ContainsFunc(secretEndings, func(ending string) bool { return strings.HasSuffix(upper, "_"+ending) })
}
