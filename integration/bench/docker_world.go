package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// roleEngine is the first argument of this binary in the isolated environment.
const roleEngine = "engine"

// The programs in the world, and where it shows them.
const (
	worldDir   = "/opt/clove"
	worldBench = "bench"
	worldOCI   = "clove-oci"
	worldRunc  = "runc-current"
)

const (
	engineSocket = "unix:///run/docker/sock"
	engineImage  = "clove.test/bench"
	worldCgroup  = "/sys/fs/cgroup"
)

// engineMain is main of this binary in the isolated environment.
func engineMain(args []string) error {
	if len(args) != 1 {
		return errors.New("bench engine ROUNDS")
	}
	rounds, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := giveWay(worldCgroup); err != nil {
		return err
	}
	out, err := measureEngine(rounds)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// measureEngine starts the engine, measures its runtimes in turn, and ends it.
func measureEngine(rounds int) (out engineResults, err error) {
	engine, err := startEngine("/run/docker")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, engine.end()) }()
	if err := importImage(); err != nil {
		return out, err
	}
	thread, err := nsthread.Start(0)
	if err != nil {
		return out, err
	}
	defer thread.Close()
	b := &bench{rounds: rounds, thread: thread, scratch: "/run/bench"}
	out.Engine = output("dockerd", "--version") + "; " + firstLine("runc", "--version")
	out.Figures, err = b.compare(dockerPeers, peerDocker, whatDocker, 1)
	return out, err
}

func firstLine(argv ...string) string {
	text, _ := exec.Command(argv[0], argv[1:]...).Output() // it is only shown
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// giveWay moves the environment's processes into a cgroup of their own. On v2 a cgroup
// that holds processes cannot pass controllers on to its children, and the engine needs
// that. On v1 there is nothing to do.
func giveWay(root string) error {
	pids, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	leaf := filepath.Join(root, "world")
	if err := os.Mkdir(leaf, 0o755); err != nil {
		return err
	}
	for pid := range strings.FieldsSeq(string(pids)) {
		if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(pid), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+cpu +cpuset +io +memory +pids"), 0o644)
}

// engine is a dockerd in the isolated environment.
type engine struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// engineTime bounds the time until dockerd serves, and until it has ended.
const engineTime = time.Minute

// startEngine returns when dockerd serves. Everything of it is below dir, which is in
// memory: a disk would be in the measurement.
func startEngine(dir string) (*engine, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	e := &engine{log: filepath.Join(dir, "log"), ended: make(chan struct{}), cmd: exec.Command("dockerd", "-H", engineSocket,
		"--pidfile", filepath.Join(dir, "pid"), "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"--userland-proxy=false", "--add-runtime", "clove="+filepath.Join(worldDir, worldOCI),
		"--add-runtime", worldRunc+"="+filepath.Join(worldDir, worldRunc))}
	log, err := os.Create(e.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	e.cmd.Stdout, e.cmd.Stderr = log, log
	if err := errors.Join(e.cmd.Start(), os.Setenv("DOCKER_HOST", engineSocket)); err != nil {
		return nil, err
	}
	// One goroutine waits for the process, so that serves and end can both see its end.
	go func() {
		defer close(e.ended)
		e.cmd.Wait() // its log shows whether it failed
	}()
	return e, e.serves()
}

// serves asks until dockerd answers: it has no other sign that it is ready.
func (e *engine) serves() error {
	late := time.After(engineTime)
	for exec.Command("docker", "version").Run() != nil {
		select {
		case <-e.ended:
			return e.failed("ended")
		case <-late:
			return errors.Join(e.failed("does not serve"), e.end())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// end sends SIGTERM, upon which dockerd ends its containers.
func (e *engine) end() error {
	if err := e.cmd.Process.Signal(unix.SIGTERM); err != nil {
		return e.failed("is gone")
	}
	select {
	case <-e.ended:
		return nil
	case <-time.After(engineTime):
		return e.failed("does not end")
	}
}

// failed adds the end of dockerd's log.
func (e *engine) failed(how string) error {
	log, err := os.ReadFile(e.log)
	var said tail
	said.Write(log)
	return errors.Join(fmt.Errorf("dockerd %s: %s", how, said.text), err)
}

// importImage makes an image of the machine's static busybox, so that nothing is
// downloaded.
func importImage() error {
	layer, err := imageLayer("/usr/bin/busybox")
	if err != nil {
		return err
	}
	cmd := exec.Command("docker", "import", "-", engineImage)
	cmd.Stdin = bytes.NewReader(layer)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot make the image: %w: %s", err, lastLine(out))
	}
	return nil
}

// imageLayer is a file system in which programTrue can run: busybox under that name,
// and the directories that an engine mounts on.
func imageLayer(busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range []string{"bin/", "dev/", "etc/", "proc/", "sys/", "tmp/"} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}))
	}
	err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(programTrue[0], "/"), Mode: 0o755, Size: int64(len(program))}))
	_, copied := w.Write(program)
	return out.Bytes(), errors.Join(err, copied, w.Close())
}
