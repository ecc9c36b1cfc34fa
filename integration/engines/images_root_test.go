//go:build root

package engines

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The images' names. The domain does not exist, so a pull fails.
const (
	agentImage = "clove.test/agent:1"
	pauseImage = "clove.test/pause:1"
)

// entrypoints are the images' commands. The second one is a pod's first process, which only
// holds the pod's namespaces.
var entrypoints = map[string][]string{pauseImage: {"/bin/stubborn"}}

// applets are links to busybox. There are no others: a script that needs another one fails.
var applets = []string{"cat", "chmod", "date", "dd", "echo", "env", "grep", "head", "hostname", "httpd", "id", "ip", "kill", "ls", "mkdir",
	"mount", "nc", "nslookup", "ps", "rm", "sed", "sh", "sleep", "sort", "stat", "timeout", "touch", "tr", "true", "tty", "wc", "wget"}

// programs are scripts in the images.
var programs = map[string]string{
	// The number of processes that can exist at once.
	"forks": "#!/bin/sh\nn=0\nwhile [ $n -lt 40 ]; do sleep 600 & n=$((n+1)); done 2>/dev/null\necho forked all\n",
	// Touches 64 MiB in one piece, and nothing else.
	"eat": "#!/bin/sh\nexec dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null\n",
	// Prints a limit of its own cgroup, by the name in each version of cgroups: limit V1 V2.
	"limit": "#!/bin/sh\ncat /sys/fs/cgroup/$1 2>/dev/null || cat /sys/fs/cgroup/$2\n",
	// Ends with status 3 when it gets TERM, and prints when it is ready for it.
	"obey": "#!/bin/sh\ntrap 'echo got TERM; exit 3' TERM\ntrap 'echo got USR1' USR1\necho up\nwhile :; do sleep 600 & wait; done\n",
	// Prints what a web server sends: reach ADDRESS|NAME [PORT]. No long wait is needed: the
	// gate refuses at once.
	"reach": `#!/bin/sh
to=$1
case $1 in *[a-z]*) to=$(nslookup -type=a $1 2>/dev/null | sed -n '/^Name:/,$s/^Address: //p') ;; esac
[ "$to" ] || { echo no such name; exit; }
printf 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' $1 | nc $to ${2:-80} 2>/dev/null | grep -E '^(I am|served)' || echo cut off
`,
	// A web server that sends "served".
	"serve": "#!/bin/sh\necho served >/srv/index.html\nhttpd -h /srv -p 80\nexec obey\n",
	// Ignores TERM.
	"stubborn": "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 600; done\n",
}

// archive writes an image in the format of docker save, which all engines read.
func archive(t *testing.T, path, name string) {
	t.Helper()
	root := layer(t)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Env": []string{"PATH=/bin"}, "Entrypoint": entrypoints[name]},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(root))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	var out tarball
	out.add(t, "manifest.json", 0o644, manifest)
	out.add(t, "config.json", 0o644, config)
	out.add(t, "layer.tar", 0o644, root)
	if err := os.WriteFile(path, out.end(t), 0o644); err != nil {
		t.Fatal(err)
	}
}

// layer is the images' file system.
func layer(t *testing.T) []byte {
	t.Helper()
	busybox, err := os.ReadFile("/usr/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	var out tarball
	for _, dir := range []string{"bin/", "dev/", "etc/", "proc/", "srv/", "sys/", "tmp/"} {
		out.add(t, dir, 0o755, nil)
	}
	out.add(t, "bin/busybox", 0o755, busybox)
	for _, name := range applets {
		out.link(t, filepath.Join("bin", name), "busybox")
	}
	for name, text := range programs {
		out.add(t, filepath.Join("bin", name), 0o755, []byte(text))
	}
	out.add(t, "etc/passwd", 0o644, []byte("root:x:0:0::/:/bin/sh\nmallory:x:1000:1000::/:/bin/sh\n"))
	out.add(t, "etc/group", 0o644, []byte("root:x:0:\nmallory:x:1000:\n"))
	out.add(t, "etc/plain", 0o644, []byte("no program\n"))
	return out.end(t)
}

// tarball is a tar file in memory.
type tarball struct {
	buffer bytes.Buffer
	writer *tar.Writer
}

func (b *tarball) add(t *testing.T, name string, mode int64, content []byte) {
	t.Helper()
	kind := byte(tar.TypeReg)
	if name[len(name)-1] == '/' {
		kind = tar.TypeDir
	}
	b.entry(t, &tar.Header{Typeflag: kind, Name: name, Mode: mode, Size: int64(len(content))}, content)
}

func (b *tarball) link(t *testing.T, name, target string) {
	t.Helper()
	b.entry(t, &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

func (b *tarball) entry(t *testing.T, header *tar.Header, content []byte) {
	t.Helper()
	if b.writer == nil {
		b.writer = tar.NewWriter(&b.buffer)
	}
	err := b.writer.WriteHeader(header)
	if err == nil {
		_, err = b.writer.Write(content)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b *tarball) end(t *testing.T) []byte {
	t.Helper()
	if err := b.writer.Close(); err != nil {
		t.Fatal(err)
	}
	return b.buffer.Bytes()
}
