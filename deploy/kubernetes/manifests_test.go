package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime"
	sandboxv1beta1 "sigs.k8s.io/agent-sandbox/api/v1beta1"

	"clove.run/clove/internal/kubetest"
)

// manifests are this folder's files, decoded strictly.
func manifests(t *testing.T) map[string][]runtime.Object {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	all := map[string][]runtime.Object{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if all[file], err = kubetest.Decode(text); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return all
}

func only[T any](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	object, is := objects[len(objects)-1].(T)
	if !is {
		t.Fatalf("it is a %T", objects[len(objects)-1])
	}
	return object
}

// TestPodsNameTheRuntimeClass: clove would run each example, with the deadline, limits or
// network of its annotations.
func TestPodsNameTheRuntimeClass(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	class := only[*nodev1.RuntimeClass](t, all["runtimeclass.yaml"])
	if class.Handler != "clove" || class.Overhead == nil || class.Overhead.PodFixed.Memory().IsZero() || len(class.Scheduling.NodeSelector) != 1 {
		t.Errorf("%+v", class)
	}
	for file, pod := range map[string]corev1.PodTemplateSpec{
		"pod.yaml":     {ObjectMeta: only[*corev1.Pod](t, all["pod.yaml"]).ObjectMeta, Spec: only[*corev1.Pod](t, all["pod.yaml"]).Spec},
		"job.yaml":     only[*batchv1.Job](t, all["job.yaml"]).Spec.Template,
		"sandbox.yaml": {Spec: only[*sandboxv1beta1.Sandbox](t, all["sandbox.yaml"]).Spec.PodTemplate.Spec},
	} {
		if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName != class.Name {
			t.Errorf("%s: its runtime class is not %s", file, class.Name)
		}
		if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
			t.Errorf("%s: the agent gets the cluster's credentials", file)
		}
	}
	if annotations := only[*sandboxv1beta1.Sandbox](t, all["sandbox.yaml"]).Spec.PodTemplate.ObjectMeta.Annotations; len(annotations) == 0 {
		t.Error("the sandbox has no rules")
	}
}

// TestUninstallReplacesInstall: they have the same DaemonSet name, so that they never work on
// a node at the same time.
func TestUninstallReplacesInstall(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	install, uninstall := only[*appsv1.DaemonSet](t, all["install.yaml"]), only[*appsv1.DaemonSet](t, all["uninstall.yaml"])
	class := only[*nodev1.RuntimeClass](t, all["runtimeclass.yaml"])
	if selected := install.Spec.Template.Spec.NodeSelector; !reflect.DeepEqual(selected, class.Scheduling.NodeSelector) {
		t.Errorf("pods go where clove is not, which is %v", selected)
	}
	for key, value := range install.Spec.Selector.MatchLabels {
		if install.Spec.Template.Labels[key] != value {
			t.Errorf("the DaemonSet does not select its pods by %s", key)
		}
	}
	clear(install)
	clear(uninstall)
	if !reflect.DeepEqual(install, uninstall) {
		t.Errorf("they differ in more than what is done:\n%+v\n%+v", install, uninstall)
	}
}

// clear removes the parts in which the two DaemonSets may differ.
func clear(set *appsv1.DaemonSet) {
	spec := &set.Spec.Template.Spec
	spec.InitContainers[0].Name, spec.InitContainers[0].Command, spec.Containers[0].Name = "", nil, ""
}

func TestScriptsAreShell(t *testing.T) {
	t.Parallel()
	all := manifests(t)
	for _, file := range []string{"install.yaml", "uninstall.yaml"} {
		pod := only[*appsv1.DaemonSet](t, all[file]).Spec.Template.Spec
		command := pod.InitContainers[0].Command
		if len(command) != 3 || command[0] != "sh" || !strings.Contains(command[2], pod.Volumes[0].HostPath.Path+"/bin/clove node ") {
			t.Errorf("%s: %q", file, command)
			continue
		}
		if out, err := exec.Command("sh", "-n", "-c", command[2]).CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", file, err, out)
		}
	}
}
