//go:build root

package engines

import (
	"os"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func tryPods(t *testing.T, n node) {
	for _, behaviour := range podBehaviours {
		t.Run(behaviour.name, func(t *testing.T) {
			for _, handler := range runtimes {
				t.Run(handler, func(t *testing.T) {
					t.Parallel()
					behaviour.try(t, n, handler)
				})
			}
		})
	}
}

var podBehaviours = []struct {
	name string
	try  func(t *testing.T, n node, handler string)
}{
	{"a pod's life", podLives},
	{"two containers of a pod", podShares},
	{"streams", podStreams},
	{"limits", podLimits},
	{"resources change", podUpdates},
	{"the pod's annotation", podAnnotated},
	{"the container's annotation", containerAnnotated},
	{"an annotation that cannot be understood", podMisannotated},
}

func podLives(t *testing.T, n node, handler string) {
	k := startPod(t, n, handler, nil)
	config := container("main", "obey")
	id := k.begin(config)
	if status := k.status(id); status.State != cri.ContainerState_CONTAINER_RUNNING {
		t.Errorf("started, it is %s", status.State)
	}
	stdout, stderr, code := k.exec(id, "sh", "-c", "hostname; echo err >&2; exit 5")
	if stdout != "pod\n" || stderr != "err\n" || code != 5 {
		t.Errorf("exec: %q, %q, %d", stdout, stderr, code)
	}
	stats, err := n.cri.ContainerStats(k.context(), &cri.ContainerStatsRequest{ContainerId: id})
	if err != nil || stats.Stats.Memory.GetWorkingSetBytes().GetValue() == 0 || stats.Stats.Cpu.GetUsageCoreNanoSeconds().GetValue() == 0 {
		t.Errorf("stats: %v, %v", stats, err)
	}
	k.said(config, " stdout F up\n") // from then on it handles TERM
	if code := k.stop(id); code != 3 {
		t.Errorf("stopped in order, it ends with %d, want 3", code)
	}
	if log := k.log(config); !strings.Contains(log, " stdout F got TERM\n") {
		t.Errorf("the log is %q", log)
	}
	k.remove(id)
	left, err := n.cri.ListContainers(k.context(), &cri.ListContainersRequest{Filter: &cri.ContainerFilter{PodSandboxId: k.sandbox}})
	if err != nil || len(left.Containers) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	config = container("stubborn", "stubborn")
	id = k.begin(config)
	k.said(config, " stdout F up\n") // from then on it ignores TERM
	if code := k.stop(id); code != 137 {
		t.Errorf("stopped by force, it ends with %d, want 137", code)
	}
}

func podShares(t *testing.T, n node, handler string) {
	k := startPod(t, n, handler, nil)
	status, err := n.cri.PodSandboxStatus(k.context(), &cri.PodSandboxStatusRequest{PodSandboxId: k.sandbox})
	if err != nil || status.Status.State != cri.PodSandboxState_SANDBOX_READY {
		t.Fatalf("%v, %v", status, err)
	}
	server := k.begin(container("server", "sh", "-c", "echo served >/srv/page; exec obey"))
	if _, stderr, code := k.exec(server, "httpd", "-h", "/srv", "-p", "80"); code != 0 {
		t.Fatal(stderr)
	}
	client := k.begin(container("client", "obey"))
	for _, to := range []string{"127.0.0.1", status.Status.Network.Ip} {
		if stdout, stderr, _ := k.exec(client, "wget", "-qO-", "http://"+to+"/page"); stdout != "served\n" {
			t.Errorf("from %s comes %q, %s", to, stdout, stderr)
		}
	}
	k.stop(server)
	k.stop(client)
}

func podStreams(t *testing.T, n node, handler string) {
	k := startPod(t, n, handler, nil)
	id := k.begin(container("main", "obey"))
	exec, err := n.cri.Exec(k.context(), &cri.ExecRequest{ContainerId: id, Cmd: []string{"sh", "-c", "read x; echo got $x; tty; exit 5"}, Stdin: true, Stdout: true, Tty: true})
	if err != nil {
		t.Fatal(err)
	}
	s := dialStream(t, exec.Url)
	s.write("word\n")
	s.until(stdoutChannel, "got word\r\n/dev/pts/")
	if status := s.until(errorChannel, "}"); !strings.Contains(status, `"ExitCode","message":"5"`) {
		t.Errorf("exec's status is %s", status)
	}
	attach, err := n.cri.Attach(k.context(), &cri.AttachRequest{ContainerId: id, Stdout: true})
	if err != nil {
		t.Fatal(err)
	}
	s = dialStream(t, attach.Url)
	// Output from before the stream is connected is lost, and no event reports the connection.
	exec, err = n.cri.Exec(k.context(), &cri.ExecRequest{ContainerId: id, Cmd: []string{"sh", "-c", "while kill -USR1 1; do sleep 1; done"}, Stdout: true})
	if err != nil {
		t.Fatal(err)
	}
	dialStream(t, exec.Url)
	s.until(stdoutChannel, "got USR1\n")
	k.stop(id)
}

// podLimits: a process above the limit is killed, and without the limit it is not.
func podLimits(t *testing.T, n node, handler string) {
	k := startPod(t, n, handler, nil)
	config := container("small", "eat")
	config.Linux.Resources.MemoryLimitInBytes = 32 << 20
	if status := k.end(k.begin(config)); status.ExitCode != 137 {
		t.Errorf("over the limit it ends with %d, %s", status.ExitCode, status.Reason)
	}
	if status := k.end(k.begin(container("large", "eat"))); status.ExitCode != 0 {
		t.Errorf("without a limit it ends with %d, %s", status.ExitCode, status.Reason)
	}
}

// memoryLimit prints the limit from the container's own cgroup.
func (k *kubelet) memoryLimit(id string) string {
	k.t.Helper()
	stdout, stderr, code := k.exec(id, "limit", "memory/memory.limit_in_bytes", "memory.max")
	if code != 0 {
		k.t.Fatal(stderr)
	}
	return strings.TrimSpace(stdout)
}

func podUpdates(t *testing.T, n node, handler string) {
	k := startPod(t, n, handler, nil)
	id := k.begin(container("main", "obey"))
	if _, err := n.cri.UpdateContainerResources(k.context(), &cri.UpdateContainerResourcesRequest{
		ContainerId: id, Linux: &cri.LinuxContainerResources{MemoryLimitInBytes: 64 << 20},
	}); err != nil {
		t.Fatal(err)
	}
	if limit := k.memoryLimit(id); limit != "67108864" {
		t.Errorf("the limit became %s", limit)
	}
	k.stop(id)
}

// limitAnnotation is a rule in a pod's annotations, for a runtime that reads it.
var limitAnnotation = map[string]string{"run.clove.limits.memory": "32M"}

// wantHeld expects the annotation's limit under clove, and none under a runtime that does not
// know the annotation.
func (k *kubelet) wantHeld(config *cri.ContainerConfig) {
	k.t.Helper()
	id := k.begin(config)
	if limit := k.memoryLimit(id); (limit == "33554432") != (k.handler == "clove") {
		k.t.Errorf("the memory limit is %s", limit)
	}
	want := map[string]int32{"clove": 137}[k.handler]
	if _, _, code := k.exec(id, "eat"); code != want {
		k.t.Errorf("64 MiB under a rule of 32 end with %d, want %d", code, want)
	}
	k.stop(id)
}

func podAnnotated(t *testing.T, n node, handler string) {
	startPod(t, n, handler, limitAnnotation).wantHeld(container("main", "obey"))
}

func containerAnnotated(t *testing.T, n node, handler string) {
	config := container("main", "obey")
	config.Annotations = limitAnnotation
	startPod(t, n, handler, nil).wantHeld(config)
}

// podMisannotated: with an annotation that clove cannot parse, nothing starts, and nothing is
// left.
func podMisannotated(t *testing.T, n node, handler string) {
	k := startPod(t, n, handler, nil)
	config := container("main", "obey")
	config.Annotations = map[string]string{"run.clove.limits.memory": "much"}
	id, err := k.create(config)
	if err == nil {
		err = k.start(id)
	}
	if handler == "runc" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), "run.clove.limits.memory") {
		t.Errorf("it started, or the error names no annotation: %v", err)
	}
	if _, err := os.Stat("/run/containerd/runc/k8s.io/" + id); id == "" || !os.IsNotExist(err) {
		t.Errorf("the runtime keeps something of %q: %v", id, err)
	}
}
