/* Attacks on kernel interfaces that agents do not need. If a success would change
 * the host, the arguments are such that the kernel refuses them only after it has
 * checked the privilege. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "probe.h"

#define ATTEMPT(name) static void name(const void *arg, struct outcome *out)

ATTEMPT(by_add_key)
{
	(void)arg; /* the process keyring ends with the process */
	done(out, syscall(SYS_add_key, "user", "probe", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

ATTEMPT(by_session_keyring)
{
	(void)arg;
	done(out, syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
}

ATTEMPT(by_request_key)
{
	(void)arg; /* a privileged caller gets ENOKEY */
	done(out, syscall(SYS_request_key, "user", "probe-that-is-not", NULL, 0));
}

ATTEMPT(by_io_uring)
{
	struct io_uring_params params = {0};
	(void)arg;
	done(out, syscall(SYS_io_uring_setup, 1, &params));
}

ATTEMPT(by_bpf)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	(void)arg;
	done(out, syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

ATTEMPT(by_perf)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK, .exclude_kernel = 1};
	int pid = *(const int *)arg; /* -1: all processes on CPU 0 */
	done(out, syscall(SYS_perf_event_open, &attr, pid, pid ? 0 : -1, -1, 0));
}

ATTEMPT(by_userfaultfd)
{
	(void)arg;
	done(out, syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */));
}

ATTEMPT(by_memfd_secret)
{
	(void)arg;
	done(out, syscall(SYS_memfd_secret, 0));
}

ATTEMPT(by_fanotify)
{
	(void)arg;
	done(out, syscall(SYS_fanotify_init, 0, O_RDONLY));
}

/* By handle, every file of the file system can be opened without its directories. */
ATTEMPT(by_handle)
{
	struct {
		struct file_handle head;
		unsigned char bytes[128];
	} handle = {.head.handle_bytes = sizeof(handle.bytes)};
	int mount_id, at = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)arg;
	done(out, syscall(SYS_name_to_handle_at, AT_FDCWD, "/etc/passwd", &handle.head, &mount_id, 0));
	if (!out->ok) {
		note(out, "name_to_handle_at");
		return;
	}
	done(out, syscall(SYS_open_by_handle_at, at, &handle.head, O_RDONLY));
}

ATTEMPT(by_syslog)
{
	char text[64];
	(void)arg;
	done(out, syscall(SYS_syslog, 3 /* READ_ALL */, text, (int)sizeof(text)));
}

ATTEMPT(by_sethostname)
{
	struct utsname name;
	(void)arg;
	uname(&name); /* the name does not change */
	done(out, syscall(SYS_sethostname, name.nodename, strlen(name.nodename)));
}

ATTEMPT(by_init_module)
{
	(void)arg; /* a kernel that would load one returns ENOEXEC or EFAULT */
	done(out, syscall(SYS_init_module, "not a module", 12, ""));
}

ATTEMPT(by_swapon)
{
	(void)arg; /* a privileged caller gets ENOENT */
	done(out, syscall(SYS_swapon, "/probe-that-is-not", 0));
}

ATTEMPT(by_acct)
{
	(void)arg;
	done(out, syscall(SYS_acct, "/probe-that-is-not"));
}

ATTEMPT(by_quotactl)
{
	(void)arg; /* Q_SYNC without a device: the privilege depends on the command */
	done(out, syscall(SYS_quotactl, 0x80000100, "/probe-that-is-not", 0, NULL));
}

ATTEMPT(by_personality)
{
	(void)arg;
	done(out, syscall(SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */));
}

ATTEMPT(by_aio)
{
	unsigned long context = 0;
	(void)arg;
	done(out, syscall(SYS_io_setup, 1, &context));
}

/* Pages are allocated when they are touched: this only tests the permission. */
ATTEMPT(by_huge_file)
{
	(void)arg;
	done(out, syscall(SYS_memfd_create, "probe", 4 /* MFD_HUGETLB */));
}

ATTEMPT(by_huge_pages)
{
	(void)arg; /* ENOMEM if the host has reserved none */
	done(out, mmap(NULL, 1 << 21, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED ? -1 : 0);
}

#ifdef __x86_64__
ATTEMPT(by_iopl)
{
	(void)arg;
	done(out, syscall(SYS_iopl, 3));
}

ATTEMPT(by_modify_ldt)
{
	char table[64];
	(void)arg;
	done(out, syscall(SYS_modify_ldt, 0, table, sizeof(table)));
}
#endif

static const int own = 0, everyone = -1;

static const struct variant calls[] = {
	{"add_key", by_add_key, NULL},
	{"session-keyring", by_session_keyring, NULL},
	{"request_key", by_request_key, NULL},
	{"io_uring", by_io_uring, NULL},
	{"bpf", by_bpf, NULL},
	{"perf", by_perf, &own},
	{"perf-everyone", by_perf, &everyone},
	{"userfaultfd", by_userfaultfd, NULL},
	{"memfd_secret", by_memfd_secret, NULL},
	{"fanotify", by_fanotify, NULL},
	{"open_by_handle", by_handle, NULL},
	{"syslog", by_syslog, NULL},
	{"sethostname", by_sethostname, NULL},
	{"init_module", by_init_module, NULL},
	{"swapon", by_swapon, NULL},
	{"acct", by_acct, NULL},
	{"quotactl", by_quotactl, NULL},
	{"personality", by_personality, NULL},
	{"aio", by_aio, NULL},
	{"huge-file", by_huge_file, NULL},
	{"huge-pages", by_huge_pages, NULL},
#ifdef __x86_64__
	{"iopl", by_iopl, NULL},
	{"modify_ldt", by_modify_ldt, NULL},
#endif
};

int cmd_kernel(int argc, char **argv)
{
	return variants("kernel", calls, COUNT(calls), argc - 1, argv + 1);
}
