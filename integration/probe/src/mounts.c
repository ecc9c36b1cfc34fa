/* Attacks that change mounts or the root. A success is undone at once, because
 * the control runs in a namespace that others use. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

/* From linux/fs.h and sys/mount.h, which clash with linux/mount.h. */
#define BIND 0x1000
#define REMOUNT 0x20
#define DETACH 2

static const char *scratch(struct outcome *out)
{
	static char path[] = "/tmp/probe-XXXXXX";
	const char *made = mkdtemp(path);
	done(out, made ? 0 : -1);
	if (!made)
		note(out, "no directory to mount on");
	return made;
}

static void mounted(struct outcome *out, const char *at, long result)
{
	done(out, result);
	if (out->ok)
		syscall(SYS_umount2, at, DETACH);
	rmdir(at);
}

static void by_tmpfs(const void *arg, struct outcome *out)
{
	const char *at = scratch(out);
	(void)arg;
	if (at)
		mounted(out, at, syscall(SYS_mount, "probe", at, "tmpfs", 0, NULL));
}

static void by_proc(const void *arg, struct outcome *out)
{
	const char *at = scratch(out);
	(void)arg;
	if (at)
		mounted(out, at, syscall(SYS_mount, "probe", at, "proc", 0, NULL));
}

static void by_bind(const void *arg, struct outcome *out)
{
	const char *at = scratch(out);
	(void)arg;
	if (at)
		mounted(out, at, syscall(SYS_mount, "/", at, NULL, BIND, NULL));
}

/* A lazy unmount of something that is not mounted shows whether the call is allowed
 * (EINVAL) or refused (EPERM), and removes nothing. */
static void by_umount(const void *arg, struct outcome *out)
{
	const char *at = scratch(out);
	(void)arg;
	if (!at)
		return;
	done(out, syscall(SYS_umount2, at, DETACH));
	rmdir(at);
}

static void by_fsopen(const void *arg, struct outcome *out)
{
	(void)arg;
	int fs = (int)syscall(SYS_fsopen, "tmpfs", 0);
	done(out, fs);
	if (!out->ok)
		return;
	done(out, syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
	int detached = out->ok ? (int)syscall(SYS_fsmount, fs, 0, 0) : -1;
	done(out, out->ok ? detached : -1);
	const char *at = out->ok ? scratch(out) : NULL;
	if (at)
		mounted(out, at, syscall(SYS_move_mount, detached, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH));
}

static void by_open_tree(const void *arg, struct outcome *out)
{
	(void)arg;
	done(out, syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

/* On a detached copy, so that the real mount keeps its flags. */
static void by_mount_setattr(const void *arg, struct outcome *out)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NODEV};
	(void)arg;
	int copy = (int)syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	done(out, syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)));
}

static void by_fspick(const void *arg, struct outcome *out)
{
	(void)arg;
	done(out, syscall(SYS_fspick, AT_FDCWD, "/", 0));
}

static const struct variant mounts[] = {
	{"tmpfs", by_tmpfs, NULL},	   {"proc", by_proc, NULL},
	{"bind", by_bind, NULL},	   {"umount", by_umount, NULL},
	{"fsopen", by_fsopen, NULL},	   {"open_tree", by_open_tree, NULL},
	{"mount_setattr", by_mount_setattr, NULL}, {"fspick", by_fspick, NULL},
};

int cmd_mount(int argc, char **argv)
{
	return variants("mount", mounts, COUNT(mounts), argc - 1, argv + 1);
}

/* The classic escape from a chroot: keep a working directory above a second chroot,
 * walk up, and make that the root. It succeeded if "/" is what it was before. */
static void by_chroot(const void *arg, struct outcome *out)
{
	struct stat before, after;
	const char *directory = arg;
	stat("/", &before);
	done(out, chdir("/") || chroot(directory) ? -1 : 0);
	if (!out->ok)
		return;
	for (int up = 0; up < 64; up++)
		if (chdir(".."))
			break;
	done(out, chroot(".") || stat("/", &after) ? -1 : 0);
	if (out->ok && (before.st_ino != after.st_ino || before.st_dev != after.st_dev)) {
		out->ok = 0;
		out->err = EXDEV;
		note(out, "chroot works, but the way out ends elsewhere");
	}
}

int cmd_chroot(int argc, char **argv)
{
	if (argc != 2)
		usage("chroot: to which directory?");
	const struct variant only = {"", by_chroot, argv[1]};
	attempt("chroot", &only);
	return 0;
}
