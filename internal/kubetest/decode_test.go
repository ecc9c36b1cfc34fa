package kubetest

import (
	"strings"
	"testing"
)

const goodPod = `apiVersion: v1
kind: Pod
metadata:
  name: one
  annotations:
    run.clove.timeout: 10m
spec:
  runtimeClassName: clove
  containers:
  - name: agent
    image: scratch
    resources:
      limits: {memory: 256Mi}
    volumeMounts:
    - {name: data, mountPath: /data}
  volumes:
  - name: data
    emptyDir: {}
`

func TestAGoodObjectIsTaken(t *testing.T) {
	t.Parallel()
	objects, err := Decode([]byte(goodPod + "---\n" + strings.Replace(goodPod, "name: one", "name: two", 1)))
	if err != nil || len(objects) != 2 {
		t.Errorf("%d objects, %v", len(objects), err)
	}
}

// TestEachMistakeIsSeen changes one thing of the good pod at a time.
func TestEachMistakeIsSeen(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, old, new, want string }{
		{"an unknown field", "runtimeClassName", "runtimeClass", `unknown field "spec.runtimeClass"`},
		{"a field in other letters", "runtimeClassName", "RuntimeClassName", `unknown field "spec.RuntimeClassName"`},
		{"a doubled key", "  runtimeClassName: clove\n", "  runtimeClassName: clove\n  runtimeClassName: runc\n", "already set"},
		{"a number for a text", "run.clove.timeout: 10m", "run.clove.timeout: 10", "cannot unmarshal number"},
		{"no quantity", "256Mi", "256MB", "quantities must match"},
		{"a request above its limit", "limits: {memory: 256Mi}", "{limits: {memory: 1Mi}, requests: {memory: 2Mi}}", "request 2Mi, limit 1Mi"},
		{"no limit", "256Mi", "0", "limit 0"},
		{"a name with a dot", "name: one", "name: one.two", "metadata.name"},
		{"no name", "  name: one\n", "", "metadata.name"},
		{"an annotation that clove does not know", "run.clove.timeout", "run.clove.timeouts", "there is no such annotation"},
		{"a value that clove does not know", "10m", "tomorrow", "is not a time"},
		{"an annotation without a name", "run.clove.timeout: 10m", `"a/b/c": x`, "annotations"},
		{"a mount of nothing", "name: data, mountPath", "name: other, mountPath", `mounts "other"`},
		{"a mount by a relative path", "mountPath: /data", "mountPath: data", `at "data"`},
		{"a volume for nothing", "    volumeMounts:\n    - {name: data, mountPath: /data}\n", "", `nothing mounts volume "data"`},
		{"no image", "    image: scratch\n", "", "has no image"},
		{"no such kind", "kind: Pod", "kind: Pods", "no kind"},
		{"no such version", "apiVersion: v1", "apiVersion: v2", "no kind"},
	} {
		changed := strings.Replace(goodPod, row.old, row.new, 1)
		if row.name == "a request above its limit" {
			changed = strings.Replace(goodPod, "resources:\n      limits: {memory: 256Mi}", "resources:\n      limits: {memory: 1Mi}\n      requests: {memory: 2Mi}", 1)
		}
		_, err := Decode([]byte(changed))
		if changed == goodPod || err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if _, err := Decode(nil); err == nil {
		t.Error("nothing is an object")
	}
}
