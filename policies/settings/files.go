package settings

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// Names of files that code asks for.
const (
	Root      = "read-only"
	Writable  = "files.writable"
	Execute   = "allow-exec"
	Read      = "allow-read"
	Landlock  = "files.landlock"
	Volume    = "volume"
	Tmpfs     = "tmpfs"
	Mount     = "mount"
	HomeDir   = "home-dir"
	KeptHome  = "home"
	Keep      = "keep"
	Rootfs    = "rootfs"
	Workspace = "workspace"
	GitDir    = "git-dir"
	Python    = "python"
)

// The values of Root.
const (
	RootWritable = "writable"
	RootReadOnly = "read-only"
)

// Files are what the agent's root is made of, except the interpreter. Host paths become
// canonical here, so that the checked path is the mounted one. A process with root's rights
// can still replace it before the start, so rootfs checks again.
var Files = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{
		{
			Flag: Root, Key: "files.root", On: RootReadOnly, Group: GroupFiles,
			Usage: "only /workspace, /tmp, /var/tmp and the home directory are writable",
			Doc:   "whether the base system can be changed, in a private layer; /workspace, /tmp, /var/tmp, the home and /dev/shm stay writable",
			Enum:  RootWritable + "|" + RootReadOnly,
			Drops: dropsOfRoot,
			Read:  one(func(r *Reader, text string) error { r.Spec.Files.ReadOnly = text == RootReadOnly; return nil }),
			Write: func(s agent.Spec) []string {
				if s.Files.ReadOnly {
					return []string{RootReadOnly}
				}
				return nil
			},
			Wider: func(base, wide agent.Spec) []Difference {
				return more(base.Files.ReadOnly && !wide.Files.ReadOnly, RootReadOnly, RootWritable)
			},
		},
		{
			Key: Writable, Form: List,
			Doc:  "with a read-only root: which of /workspace, /tmp, /var/tmp, /home/agent and /dev/shm stay writable",
			Read: readWritable,
			Write: func(s agent.Spec) []string {
				if s.Files.ReadOnly {
					return s.Files.Writable
				}
				return nil
			},
			Wider: func(base, wide agent.Spec) []Difference {
				return beyond(writable(base.Files), writable(wide.Files), slices.Contains)
			},
		},
		{
			Flag: Execute, Key: "files.execute", Form: List, Flags: Union, Group: GroupFiles,
			Usage: "with --read-only: execute only this program, folder or pattern of paths inside, with its libraries", Default: "any",
			Pod:  "build an image with these programs alone",
			Doc:  "with a read-only root: the only programs that may be executed, as paths inside: files, folders of programs or libraries, patterns such as /usr/lib/git-core/*; what a program is linked with belongs to it",
			Read: readExecute, Write: func(s agent.Spec) []string { return s.Files.Execute }, Wider: widerExecute,
		},
		{
			Flag: Read, Key: "files.read", Form: List, Flags: Union, Group: GroupFiles,
			Usage: "read only this file or folder inside, beside the agent's own places; /usr for programs", Default: "all",
			Pod:  "build an image with these files alone",
			Doc:  "the only files and folders that may be read, as paths inside, beside the agent's own /tmp, /var/tmp, /home/agent, /dev and /proc; programs and libraries must be among them: /usr",
			Read: readReadable, Write: func(s agent.Spec) []string { return s.Files.Read }, Wider: widerRead,
		},
		{
			Key: Landlock, Enum: agent.LandlockRequired,
			Doc: "required: the run is refused where Landlock does not hold the rules of files a second time",
			Read: one(func(r *Reader, text string) error {
				r.Spec.Files.Landlock = text
				return r.Spec.ValidateLandlock()
			}),
			Wider: func(base, wide agent.Spec) []Difference {
				return more(base.Files.Landlock != "" && wide.Files.Landlock == "", base.Files.Landlock, "where the host has it")
			},
		},
		{
			Flag: Volume, Short: "v", Key: "files.volumes", Form: List, Flags: Join, Group: GroupFiles,
			Usage: "show a host path inside, SOURCE:TARGET[:ro]; its files change",
			Pod:   "a cluster's nodes do not have this host's files: add a PersistentVolumeClaim to the Job, or use --workspace",
			Doc:   "SOURCE:TARGET[:ro], directories of the host",
			Read:  each(readVolume), Write: writeVolumes, Wider: widerVolumes,
		},
		{
			Flag: HomeDir, Key: "files.home", Form: List, Flags: Join, Group: GroupFiles,
			Usage: "show folders of your home in the agent's, copy on write, FOLDER[:secrets],…; their bin goes into PATH",
			Pod:   "a cluster's nodes do not have this host's files: build an image with these tools",
			Doc:   "FOLDER[:secrets], folders of the caller's home that appear in the agent's home; what the agent changes in them stays in its layer, and one with credentials is refused without :secrets",
			Read:  each(readHomeDirs), Write: writeHomeDirs, Wider: widerHomeDirs,
		},
		{
			Flag: KeptHome, Group: GroupFiles,
			Usage: "keep the home: your next run with this NAME in this folder has it again, of the size --disk; see clove home", Default: "a new one",
			Pod:  "a cluster's nodes do not have this host's homes: add a PersistentVolumeClaim to the Job",
			Read: one(readKeptHome),
		},
		{
			Flag: Keep, Manifest: Keep, Form: List, Flags: Join, Group: GroupFiles,
			Usage: "with --home: keep this folder inside, too, at the same path in the next run, as /memory",
			Pod:   "a cluster's nodes do not have this host's homes: add a PersistentVolumeClaim to the Job",
			Read:  each(readKept),
		},
		{
			Flag: Tmpfs, Key: "files.tmpfs", Form: List, Flags: Join, Group: GroupFiles,
			Usage: "private memory file system, TARGET[:size=SIZE,mode=MODE]",
			Doc:   "TARGET[:size=SIZE,mode=OCTAL]",
			Read:  each(readTmpfs), Write: writeTmpfs, Wider: widerTmpfs,
		},
		{
			Flag: Mount, Manifest: "files.mounts", Form: List, Flags: Join, Group: GroupFiles,
			Usage: "the same and --tmpfs as options, type=bind|tmpfs,source=DIR,target=DIR[,readonly]",
			Pod:   "for memory write --tmpfs; a cluster's nodes do not have this host's files: add a PersistentVolumeClaim to the Job",
			Read:  each(readMount),
		},
		{
			Flag: Rootfs, Key: "files.rootfs", Group: GroupFiles, Usage: "directory that replaces the host's base system",
			Pod:  "the root is an image's: --image",
			Doc:  "a directory of the host that replaces the base system",
			Read: one(readRootfs), Write: func(s agent.Spec) []string { return texts(s.Files.Rootfs) }, Wider: widerRootfs,
		},
		{
			Flag: Workspace, Manifest: Workspace, Group: GroupFiles, Usage: "directory that appears, copy on write, at /workspace", Default: "the script's folder",
			Read: one(readWorkspace),
		},
		{
			Flag: GitDir, Manifest: "git_dir", Group: GroupFiles, Usage: "repository of a workspace whose .git is a file, if nothing in it says so; none: it stays outside", Default: "the one that names the workspace",
			Pod: "a cluster's nodes do not have this host's repositories: clone it inside",
			Read: one(func(r *Reader, text string) (err error) {
				if r.Spec.Files.GitDir = text; text != agent.NoGitDir {
					r.Spec.Files.GitDir, err = r.directory(GitDir, text)
				}
				return err
			}),
		},
		{Flag: Python, Manifest: Python, Group: GroupFiles, Usage: "Python interpreter, or a virtual environment", Default: "python3 in PATH"},
	}}
})

// dropsOfRoot: on a writable root no list of places or programs means anything.
func dropsOfRoot(text string) []string {
	if text == RootWritable {
		return []string{Writable, Execute}
	}
	return nil
}

// readRootfs takes any directory but /. The tree may be hostile: rootfs resolves everything
// in it without following links out of it.
func readRootfs(r *Reader, text string) (err error) {
	r.Spec.Files.Rootfs, err = r.directory(Rootfs, text)
	if r.Spec.Files.Rootfs == "/" {
		return Invalid(Rootfs, "omit the flag: the host's own system is the default", "/ is the whole host")
	}
	return err
}

// readWorkspace leaves the default, the script's directory, to its caller.
func readWorkspace(r *Reader, text string) (err error) {
	if r.Spec.Files.Workspace, err = r.directory(Workspace, text); err == nil {
		err = host.CheckWorkspace("--workspace", r.Spec.Files.Workspace)
	}
	return err
}

// directory returns the canonical path of a directory of the host.
func (r *Reader) directory(flag, text string) (string, error) {
	real, err := host.Resolve("--"+flag, r.Host.Absolute(text), text)
	if err == nil && !host.IsDirectory(real) {
		return "", Invalid(flag, "name a directory", "%s is not a directory", text)
	}
	return real, err
}

// readWritable takes the list as it is: a place has one name.
func readWritable(r *Reader, texts []string) error {
	r.Spec.Files.Writable = texts
	return r.Spec.Files.ValidateWritable()
}

// readExecute takes the list as it is: its paths are inside.
func readExecute(r *Reader, texts []string) error {
	r.Spec.Files.Execute = onceEach(texts)
	return ofFlag("--"+Execute, r.Spec.ValidateExecute())
}

// readReadable is readExecute for what may be read.
func readReadable(r *Reader, texts []string) error {
	r.Spec.Files.Read = onceEach(texts)
	return ofFlag("--"+Read, r.Spec.ValidateRead())
}

// ofFlag names the flag where an error names the field of a spec.
func ofFlag(flag string, err error) error {
	if known := (*agent.Error)(nil); errors.As(err, &known) {
		hint := strings.ReplaceAll(known.Hint, "add read_only", "add --read-only")
		return &agent.Error{Kind: known.Kind, Step: flag, Message: known.Message, Hint: hint}
	}
	return err
}
