package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
)

// Run is a run, with what only a cluster needs to know.
type Run struct {
	// Spec is the run as it was asked for. Env, and the host's paths in Files, are not
	// used: Variables and Content stand for them. An empty Name is made from Stem.
	Spec agent.Spec
	Stem string // any text; characters that a name may not have are replaced

	Image        string
	Namespace    string     // empty: the one that kubectl uses
	RuntimeClass string     // the cluster's object that leads to clove-oci
	Secret       string     // the Secret that variables without a value come from
	Variables    []Variable // sorted
	Content      []File     // of the workspace, sorted by path
	Record       string     // file on the node that the exit record goes to; empty: none
}

// Variable is a variable of the agent's environment.
type Variable struct {
	Name     string
	Value    string
	IsSecret bool // its value is in the Secret, under its name
}

// Manifest has the objects to apply, in order: those that the Job's pod needs come first.
type Manifest struct{ objects []any }

// Render returns the objects for a run; the same run always gives the same objects.
// A setting that a cluster would refuse, or could not enforce, is an *agent.Error of KindInvalid,
// whose Step is the flag or the annotation that is the reason, or the workspace.
func Render(run Run) (Manifest, error) {
	files, err := place(run.Content)
	if err != nil {
		return Manifest{}, err
	}
	if run.Spec.Name == "" {
		if run.Spec.Name, err = uniqueName(run); err != nil {
			return Manifest{}, err
		}
	}
	for _, check := range []func(Run) error{checkNames, checkNode} {
		if err := check(run); err != nil {
			return Manifest{}, err
		}
	}
	labels := map[string]string{"app.kubernetes.io/name": run.Spec.Name, "app.kubernetes.io/part-of": "clove"}
	// The user's labels replace clove's of the same key.
	maps.Copy(labels, run.Spec.Labels)
	top := meta{Name: run.Spec.Name, Namespace: run.Namespace, Labels: labels}
	annotations, err := annotationsOf(run)
	if err != nil {
		return Manifest{}, err
	}
	made := job{APIVersion: "batch/v1", Kind: "Job", Metadata: top, Spec: jobOf(run.Spec)}
	// Annotations belong to the pod: the engine gets the pod's, not the Job's.
	made.Spec.Template.Metadata = meta{Labels: labels, Annotations: annotations}
	made.Spec.Template.Spec = podOf(run, files)
	if len(files) == 0 {
		return Manifest{[]any{made}}, nil
	}
	// Immutable, because the name has a hash of the content: another content is another
	// object.
	kept := configMap{APIVersion: "v1", Kind: "ConfigMap", Metadata: top, Immutable: true}
	kept.fill(files)
	return Manifest{[]any{kept, made}}, nil
}

// YAML is the form that kubectl apply -f - reads, one document for each object.
func (m Manifest) YAML() ([]byte, error) {
	var text bytes.Buffer
	for i, object := range m.objects {
		document, err := document.Sorted(object)
		if err != nil {
			return nil, fmt.Errorf("cannot write an object: %w", err)
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(document)
	}
	return text.Bytes(), nil
}

// MarshalJSON writes one List of all objects, as kubectl does.
func (m Manifest) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}{"v1", "List", m.objects})
}
