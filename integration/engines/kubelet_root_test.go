//go:build root

package engines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"clove.run/clove/internal/testhost"
)

// stopGrace is how long a container has after TERM, in seconds.
const stopGrace = 2

// node is what all pods of one test share.
type node struct {
	cri cri.RuntimeServiceClient
	// parent is a pattern for a pod's cgroup, in the naming of the node's cgroup driver.
	parent string
}

// kubelet makes the CRI calls that a kubelet makes for one pod.
type kubelet struct {
	node
	t       *testing.T
	handler string // the handler of the RuntimeClass
	config  *cri.PodSandboxConfig
	sandbox string
}

// dialCRI connects to containerd's runtime service. That service gets the events of imported
// images some time later, and before that it would ask a registry.
func dialCRI(t *testing.T) cri.RuntimeServiceClient {
	t.Helper()
	connection, err := grpc.NewClient("unix:///run/containerd/sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	images := cri.NewImageServiceClient(connection)
	for _, name := range []string{agentImage, pauseImage} {
		awaitImage(t, images, name)
	}
	return cri.NewRuntimeServiceClient(connection)
}

func awaitImage(t *testing.T, images cri.ImageServiceClient, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(30*time.Second))
	defer cancel()
	for {
		answer, err := images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
		if err != nil {
			t.Fatalf("containerd has no image %s: %v", name, err)
		}
		if answer.Image != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// context bounds one call. Clean-ups also make calls, when the test's own context has ended.
func (k *kubelet) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(30*time.Second))
	k.t.Cleanup(cancel)
	return ctx
}

// startPod runs the pod's sandbox and removes it at the end of the test.
func startPod(t *testing.T, n node, handler string, annotations map[string]string) *kubelet {
	t.Helper()
	k := preparePod(t, n, handler, annotations)
	answer, err := k.cri.RunPodSandbox(k.context(), &cri.RunPodSandboxRequest{Config: k.config, RuntimeHandler: handler})
	if err != nil {
		t.Fatal(err)
	}
	k.sandbox = answer.PodSandboxId
	t.Cleanup(k.removePod)
	return k
}

// preparePod only makes the pod's configuration.
func preparePod(t *testing.T, n node, handler string, annotations map[string]string) *kubelet {
	t.Helper()
	name := filepath.Base(t.Name())
	return &kubelet{node: n, t: t, handler: handler, config: &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: t.Name(), Namespace: "default"},
		Hostname:     "pod",
		LogDirectory: t.TempDir(),
		Annotations:  annotations,
		Linux: &cri.LinuxPodSandboxConfig{CgroupParent: fmt.Sprintf(n.parent, name), SecurityContext: &cri.LinuxSandboxSecurityContext{
			NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER},
		}},
	}}
}

func (k *kubelet) removePod() {
	if _, err := k.cri.StopPodSandbox(k.context(), &cri.StopPodSandboxRequest{PodSandboxId: k.sandbox}); err != nil {
		k.t.Error(err)
	}
	if _, err := k.cri.RemovePodSandbox(k.context(), &cri.RemovePodSandboxRequest{PodSandboxId: k.sandbox}); err != nil {
		k.t.Error(err)
	}
}

// container is what a kubelet requests for one container of a pod.
func container(name string, command ...string) *cri.ContainerConfig {
	return &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: name},
		Image:    &cri.ImageSpec{Image: agentImage},
		Command:  command,
		LogPath:  name + ".log",
		Linux: &cri.LinuxContainerConfig{
			Resources:       &cri.LinuxContainerResources{},
			SecurityContext: &cri.LinuxContainerSecurityContext{NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER}},
		},
	}
}

// create makes a container, which is removed with the sandbox.
func (k *kubelet) create(config *cri.ContainerConfig) (id string, err error) {
	answer, err := k.cri.CreateContainer(k.context(), &cri.CreateContainerRequest{PodSandboxId: k.sandbox, Config: config, SandboxConfig: k.config})
	if err != nil {
		return "", err
	}
	return answer.ContainerId, nil
}

func (k *kubelet) start(id string) error {
	_, err := k.cri.StartContainer(k.context(), &cri.StartContainerRequest{ContainerId: id})
	return err
}

// begin creates and starts.
func (k *kubelet) begin(config *cri.ContainerConfig) (id string) {
	k.t.Helper()
	id, err := k.create(config)
	if err == nil {
		err = k.start(id)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return id
}

func (k *kubelet) status(id string) *cri.ContainerStatus {
	k.t.Helper()
	answer, err := k.cri.ContainerStatus(k.context(), &cri.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		k.t.Fatal(err)
	}
	return answer.Status
}

// exec runs a command to its end, as a probe does.
func (k *kubelet) exec(id string, command ...string) (stdout, stderr string, code int32) {
	k.t.Helper()
	answer, err := k.cri.ExecSync(k.context(), &cri.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: int64(testhost.Patience(20 * time.Second).Seconds())})
	if err != nil {
		k.t.Fatal(err)
	}
	return string(answer.Stdout), string(answer.Stderr), answer.ExitCode
}

// stop ends a container and returns its exit status.
func (k *kubelet) stop(id string) int32 {
	k.t.Helper()
	if _, err := k.cri.StopContainer(k.context(), &cri.StopContainerRequest{ContainerId: id, Timeout: stopGrace}); err != nil {
		k.t.Fatal(err)
	}
	return k.status(id).ExitCode
}

// remove deletes a container that has ended.
func (k *kubelet) remove(id string) {
	k.t.Helper()
	if _, err := k.cri.RemoveContainer(k.context(), &cri.RemoveContainerRequest{ContainerId: id}); err != nil {
		k.t.Error(err)
	}
}

// end waits for a container's own end. containerd before 1.7 sends no event for it, so this
// polls, as a kubelet does.
func (k *kubelet) end(id string) *cri.ContainerStatus {
	k.t.Helper()
	deadline := time.Now().Add(testhost.Patience(20 * time.Second))
	for {
		status := k.status(id)
		if status.State == cri.ContainerState_CONTAINER_EXITED {
			return status
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("the container does not end: %v", status)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// log returns what a container wrote, in the kubelet's format.
func (k *kubelet) log(config *cri.ContainerConfig) string {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join(k.config.LogDirectory, config.LogPath))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(text)
}

// said waits until a container's log has a text.
func (k *kubelet) said(config *cri.ContainerConfig, text string) {
	k.t.Helper()
	deadline := time.Now().Add(testhost.Patience(20 * time.Second))
	for !strings.Contains(k.log(config), text) {
		if time.Now().After(deadline) {
			k.t.Fatalf("it does not say %q", text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
