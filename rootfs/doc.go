// Package rootfs builds the root file system and the layer of one agent, takes them down,
// compares a layer with the workspace, and applies its changes there.
//
// NewPlan reads the host, makes all decisions, and returns a Plan: a list of
// operations as a value, with a stable text. Plan.Mount executes them with an undo
// stack and returns the Tree. Both run on a thread that has a private mount namespace
// (internal/nsthread). Nothing is ever mounted in the host's namespace, and if clove is
// killed everything disappears with the private one, the loop device included. All
// mounts are below one staging tmpfs at RunDir/mnt, so one detached unmount removes a
// finished tree:
//
//	mnt/layer   the writable layer: an ext4 image on a loop device
//	              skel/     the lowest layer of the root
//	              upper/N   what the agent changed, one for each overlay
//	              work/N    overlayfs's own
//	              copy-N    a workspace that could not be shown directly
//	              clove.json  the table of the uppers, for OpenLayer
//	mnt/low/N   id-mapped, read-only clones of host directories
//	mnt/shown   the layer of an ended run whose root this one shows (shown.go)
//	mnt/sys     what the sandbox sees of sysfs
//	mnt/proc    in a container whose /proc is covered in parts: a whole one
//	mnt/root    the root: Tree.Root
//
// # The writable layer
//
// It is a file of exactly DiskBytes, so the kernel enforces the size and the number of
// inodes (ENOSPC), and written data is on the disk and not in memory. Each run copies
// a template. mke2fs makes one for each size and state of the host's /etc. It is removed
// when one for a later state is made, or when no run has used it for a month.
//
// The layer need not survive a power cut: it has no journal and no barriers, and is
// checked before it is used again (kept.go). A kept layer keeps its skeleton and the
// owners on its disk; an id-mapped mount translates those to the present id range. A run may
// begin with a copy of another run's layer (seed.go), which is then used as a kept one. It may
// also show the whole root of another run, read-only, by overlays without an upper directory
// over that run's image (shown.go).
//
// The image is attached to the loop device while it is one hole, and filled afterwards,
// because attaching flushes the file. This, and copying only what is not a hole, keeps a
// short run off the disk (measured: removing the image takes 0.1 ms instead of 3 to 12).
// The loop device does not use direct I/O. Bulk writes would be five times faster, but
// every start and end would wait for the disk (measured: 16 ms instead of 8 for both).
// In both modes an agent with 64 MiB of memory can fill a layer of any size.
//
// # The root over the host's base
//
// The root is an overlay over the skeleton, an allowlist of directories, links and
// harmless files of /etc. In it each directory of the host's base system (/usr, /opt,
// /etc/alternatives, /etc/ssl/certs, /var/lib/dpkg, and /bin, /lib… unless they are
// links) is an overlay of its own. So is each file system that the host has mounted
// below one, because overlayfs does not show mounts inside its lower layer. Files
// that the host adds to / or /etc later do not appear inside. Files that it adds below /usr
// and the other overlays do, and there root of the sandbox can read even files that only root
// may read: keep no secrets there. /etc is a copy of files that every user of the host
// may read, with generated passwd, group, shadow and hosts. A file with a password in a
// URL is left out.
//
// # Renamed directories
//
// The overlays have redirect_dir=on, so a directory of the lower layer can be renamed. The kernel
// needs the attribute trusted.overlay.redirect for that, which no process of a sandbox can write:
// it would take CAP_SYS_ADMIN outside, and overlayfs refuses or escapes the name in its own files.
// Diff and Apply do not rely on that (redirect.go). At the start on a kept layer, the redirects of
// the workspace are set to where Apply has moved their directories (kept_moves.go).
//
// # Owners
//
// The clones of host directories are id-mapped: host id k appears as the sandbox's id k,
// which is an unprivileged id on the host. For a workspace, an interpreter's prefix and a
// bind, the owner of the directory is mapped to the agent: behind a writable bind the
// agent acts as that owner, and its files there belong to that owner.
//
// The user namespace of this map is the agent's own, Tree.UserNamespace. A thread makes
// it as an unprivileged user of the agent's range, because the kernel counts much of
// what an agent uses for the namespace's owner too.
//
// Some file systems cannot be id-mapped: in a container the host's root is an overlay,
// and overlayfs does not support it. Such a directory is shown unmapped, with files that
// belong to the user nobody, if it is read-only or a base directory. A workspace is copied into
// the layer, and so is the base if the agent is root inside, to install packages into it.
// A writable bind is refused.
//
// # A root of the caller's own
//
// With Config.Rootfs the root is an overlay over that directory, which may be hostile.
// The directories that are mounted on come from the skeleton above it. Other targets are
// resolved by the kernel with RESOLVE_IN_ROOT, opened, and mounted on by their handles,
// so no link in the directory leads outside. Host paths are opened without following
// links, because they were resolved and checked for the plan.
//
// # A read-only root
//
// With Config.ReadOnly the overlays of the root are sealed: their mounts become read-only
// as the last step, when all mount points are made. Each place that stays writable has a mount
// of its own: a directory of the layer (scratchOp), the workspace's overlay, and what the caller
// requested. A place that Config.Writable leaves out gets no such directory, and its
// overlay is sealed too. The kernel checks the mount at each open for writing, whatever the
// rights on the file, and the way by which it was reached (mount(2), MS_BIND and
// MS_RDONLY).
//
// # A list of programs
//
// With Config.Execute every mount of the root becomes noexec, and the files of the list are
// mounted over themselves without that flag. Which files these are is found for the plan
// (executables), on the host: a preview resolves paths as the kernel will inside, and package
// linked finds loaders and libraries. Decision 45 says why mounts hold the list.
//
// # What it refuses to do
//
// /dev, /proc and the cgroup file system are libcontainer's; here they are empty
// directories. Every mount of a host directory is nosuid and nodev. rootfs refuses to
// show the kernel's file systems, the whole host and clove's own directories. It does
// not follow submounts of a workspace, and does not copy POSIX ACLs of the top directory
// of an overlay.
//
// Decisions 3, 4 and 23 (docs/decisions) say why the root is several overlays, why the
// layer is an image, and why a kept one is translated.
package rootfs
