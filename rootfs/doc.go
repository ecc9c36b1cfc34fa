// Package rootfs builds the root file system of one agent, and takes it down.
//
// NewPlan looks at the host, decides everything, and returns a Plan: steps as
// a value, with a stable text. Plan.Mount executes them on an undo stack and
// returns the Tree. Both belong on a thread that has a private mount namespace
// (internal/nsthread): nothing is ever mounted in the host's namespace, and
// when clove is killed everything goes with its namespace, the loop device
// included. All mounts lie below one staging tmpfs at RunDir/mnt, so that one
// detached unmount takes a finished tree away:
//
//	mnt/layer   the writable layer: an ext4 image on a loop device
//	              skel/     the lowest layer of the root
//	              upper/N   what the agent changed, one for each overlay
//	              work/N    overlayfs's own
//	              copy-N    a workspace that could not be shown directly
//	              clove.json  the table of the uppers, for OpenLayer
//	mnt/low/N   id-mapped, read-only clones of host directories
//	mnt/sys     what the sandbox sees of sysfs
//	mnt/proc    in a container whose /proc is covered in parts: a whole one
//	mnt/root    the root: Tree.Root
//
// # The writable layer
//
// It is a file of exactly DiskBytes, so that the size and the number of inodes
// are the kernel's limit (ENOSPC) and what is written stays on the disk. Each
// run copies a template, made once for each size and state of the host's /etc
// by mke2fs, and removed when the next state's is made or no run used it for a
// month. Nobody is promised a layer after a power cut: it has no journal and no
// barriers, and is checked before it is used again (kept.go). A layer that is
// used again keeps its skeleton and its owners on the disk; a mount translates
// those to the range of the day. The file is attached while it is one hole and filled afterwards,
// because attaching flushes the file behind the loop device; that and the copy
// of the holes keep a short run off the disk (measured: removing the image
// 0.1 ms instead of 3 to 12). The loop device is not set to direct I/O: bulk
// writes would be five times faster, but every start and end would wait for
// the disk (measured: 16 ms instead of 8 for both). An agent with 64 MiB of
// memory can fill a layer of any size either way.
//
// # The root over the host's base
//
// The root is an overlay over the skeleton, a positive list of directories,
// links and harmless files of /etc. On it each directory of the host's base
// system (/usr, /opt, /etc/alternatives, /etc/ssl/certs, /var/lib/dpkg, and
// /bin, /lib… where they are no links) is an overlay of its own, and so is each
// file system that the host has mounted below one: overlayfs does not look
// through a mount point in its lower layer. So what the host puts into / or /etc
// later does not show inside. It does show below /usr and the other overlays,
// where it is as public as the rest: keep no secrets there, root of the sandbox
// reads the files that only root may read. /etc is a copy of what every user of
// the host may read, with passwd, group, shadow and hosts generated; a file in
// which a URL carries a password is left out.
//
// The user namespace whose map they carry is the agent's own, Tree.UserNamespace:
// made here, by a thread that is an unprivileged user of the agent's range for that
// time, since the kernel counts much of what an agent uses for the owner too.
//
// The clones are id-mapped: host id k is the sandbox's id k, an unprivileged id
// of the host. For a workspace, an interpreter's prefix and a bind the owner of
// the directory is the agent instead: behind a writable bind the agent acts as
// that owner, and what it creates belongs to that owner. What cannot be id-mapped
// (in a container the host's root is an overlay, and overlayfs has no such mounts)
// is shown as it is, with files that belong to nobody, where it is read-only or a
// base directory; a workspace, and the base for root of the sandbox, who installs
// into it, is copied into the layer; a writable bind is refused.
//
// # A root of the caller's own
//
// With Config.Rootfs the root is an overlay over that directory, which may be
// hostile. The directories that are mounted on come from the skeleton above it,
// and other targets are resolved by the kernel with RESOLVE_IN_ROOT, opened, and
// mounted on by their handles: no link in it leads outside. Host paths are opened
// without following links, since they were resolved and judged for the plan.
//
// # What is left to others
//
// /dev, /proc and the cgroup file system are libcontainer's: here they are empty
// directories. Every mount is nosuid and nodev. rootfs refuses to show the
// kernel's trees, the whole host and clove's own directories. It does not follow
// submounts of a workspace, and does not carry POSIX ACLs of the top directory of
// an overlay.
package rootfs
