package rootfs

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// etcNames is the allowlist for /etc: what programs need, and nothing about this host's
// users, services or peers. Directories are copied with everything below. chromium.d is
// needed because Debian's /usr/bin/chromium fails if it finds no file there; its file
// apikeys may contain keys and is left out. /etc/alternatives and /etc/ssl/certs are too
// large to copy and are overlays of their own, see baseDirs. security/limits.conf is left
// out too, because the skeleton has one of its own.
var etcNames = []string{
	"adduser.conf", "apt/apt.conf.d", "apt/preferences.d", "apt/sources.list", "apt/sources.list.d", "apt/trusted.gpg.d",
	"bash.bashrc", "ca-certificates", "ca-certificates.conf", "chromium.d/[^a]*", "debconf.conf", "debian_version", "default/locale",
	"default/useradd", "deluser.conf", "dpkg", "ethertypes", "fonts", "gai.conf", "gss", "host.conf", "inputrc",
	"issue", "java-*-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "libaudit.conf", "locale.alias", "locale.conf",
	"localtime", "login.defs", "lsb-release", "magic", "magic.mime", "mailcap", "manpath.config", "mime.types", "nanorc",
	"netconfig", "networks", "nsswitch.conf", "os-release", "pam.conf", "pam.d", "perl", "profile", "profile.d",
	"protocols", "python*", "rpc", "security/[^l]*.conf", "services", "shells", "skel", "ssl/openssl.cnf", "terminfo", "timezone", "ucf.conf",
	"vim", "wgetrc", "xattr.conf",
}

// etcFileBytes bounds one copied file, etcEntries their number. A host with more has
// something other than program configuration there.
const (
	etcFileBytes = 1 << 20
	etcEntries   = 2000
)

// credential is a name and password in a URL, as in apt's sources and proxies.
var credential = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^/\s@:]*:[^/\s@]+@`) })

// readEtc lists what will be copied from dir: regular files and links that every user of
// the host may read. Because it is a copy, a file that appears on the host later (shadow+
// during a change of password) is not visible inside.
func readEtc(dir string) []entry {
	var entries []entry
	for _, pattern := range etcNames {
		for _, match := range matching(filepath.Join(dir, pattern)) {
			_ = filepath.WalkDir(match, func(path string, d fs.DirEntry, err error) error {
				if err != nil || len(entries) >= etcEntries {
					return nil // unreadable or vanished: treat as absent
				}
				inside := "/etc" + strings.TrimPrefix(path, dir)
				if e, ok := etcEntry(path, inside, d); ok {
					entries = append(entries, e)
				}
				return nil
			})
		}
	}
	return entries
}

// matching avoids filepath.Glob for a plain name, because the walk looks it up again anyway.
func matching(pattern string) []string {
	if !strings.ContainsAny(pattern, "*[") {
		return []string{pattern}
	}
	matches, _ := filepath.Glob(pattern) // fails on a bad pattern only
	return matches
}

// etcEntry describes path without reading it. The stamp detects changes; the content is
// read only when a new template is made.
func etcEntry(path, inside string, d fs.DirEntry) (entry, bool) {
	info, err := d.Info()
	if err != nil {
		return entry{}, false
	}
	switch {
	case info.Mode().IsDir():
		return entry{Path: inside, Kind: kindDir, Mode: 0o755}, true
	case info.Mode()&fs.ModeSymlink != 0:
		link, err := os.Readlink(path)
		return entry{Path: inside, Kind: kindLink, Data: link}, err == nil
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 || info.Size() > etcFileBytes:
		return entry{}, false
	}
	stamp := fmt.Sprintf("%d@%d", info.Size(), info.ModTime().UnixNano())
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp += fmt.Sprintf("/%d.%d", stat.Ctim.Sec, stat.Ctim.Nsec) // unlike mtime, ctime cannot be set back
	}
	// Only root inside may write it, whichever users may on the host.
	return entry{Path: inside, Kind: kindFile, Mode: uint32(info.Mode().Perm()) & 0o755, From: path, Stamp: stamp}, true
}

// load reads the content of a copied file. A file that vanished or has a credential is left out.
func (e entry) load() (entry, bool) {
	if e.From == "" {
		return e, true
	}
	data, err := os.ReadFile(e.From)
	e.Data = string(data)
	return e, err == nil && !credential().Match(data)
}

// etcGenerated are files of /etc with content of clove's own.
func etcGenerated(cfg Config, f hostInfo) []entry {
	passwd, shadow := users(f.Passwd, cfg.AgentUID, cfg.AgentGID)
	group, gshadow := groups(f.Group, cfg.AgentGID)
	return append(etcNetwork(cfg),
		entry{Path: "/etc/group", Kind: kindFile, Mode: 0o644, Data: group},
		entry{Path: "/etc/gshadow", Kind: kindFile, Mode: 0o640, Data: gshadow},
		// Empty, as in an image: the host's id would identify the host (machine-id(5)).
		entry{Path: "/etc/machine-id", Kind: kindFile, Mode: 0o444},
		entry{Path: "/etc/passwd", Kind: kindFile, Mode: 0o644, Data: passwd},
		entry{Path: "/etc/shadow", Kind: kindFile, Mode: 0o640, Data: shadow})
}

// etcNetwork are the files about the sandbox's network. They replace those of any root.
func etcNetwork(cfg Config) []entry {
	name := cfg.hostname()
	return []entry{
		{Path: "/etc/hostname", Kind: kindFile, Mode: 0o644, Data: name + "\n"},
		{Path: "/etc/hosts", Kind: kindFile, Mode: 0o644, Data: strings.TrimRight(cmp.Or(cfg.Hosts, hosts(name)), "\n") + "\n" + cfg.MoreHosts},
		{Path: "/etc/resolv.conf", Kind: kindFile, Mode: 0o644, Data: cmp.Or(cfg.ResolvConf, noResolvConf)},
	}
}

// noResolvConf is a comment and not empty, so that a person who looks into the file sees
// why no name resolves. Without a server in it, programs ask 127.0.0.1 (resolv.conf(5)),
// where no server answers.
const noResolvConf = "# This sandbox has no name server.\n"

func hosts(name string) string {
	return "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t" + name + "\n"
}

const (
	agentName   = "agent"
	usualAgent  = 1000 // the agent's id unless the caller chose another
	firstHuman  = 1000 // login.defs: UID_MIN
	nobodyID    = 65534
	lockedField = "*"
)

// agentIDs returns the owner of /home/agent. A run as root has an agent user too, to switch to.
func agentIDs(uid, gid uint32) (uint32, uint32) {
	if uid == 0 {
		return usualAgent, usualAgent
	}
	return uid, gid
}

// users returns the sandbox's passwd and shadow: the host's system users, which packages
// expect, and the agent. The host's human users are left out. An agent with the id of a
// system user is that user, and gets no second entry.
func users(host []byte, uid, gid uint32) (passwd, shadow string) {
	uid, gid = agentIDs(uid, gid)
	var names []string
	var out strings.Builder
	known := false
	for _, field := range systemEntries(host, 7) {
		known = known || field[2] == strconv.Itoa(int(uid))
		field[1] = "x"
		names = append(names, field[0])
		out.WriteString(strings.Join(field, ":") + "\n")
	}
	if !known {
		names = append(names, agentName)
		fmt.Fprintf(&out, "%s:x:%d:%d::%s:/bin/sh\n", agentName, uid, gid, agentHome)
	}
	// The last change of a password was on day 1 after 1 January 1970: with 0 a login would
	// demand a new one (shadow(5)).
	return out.String(), locked(names, ":1:0:99999:7:::\n")
}

// groups returns group and gshadow in the same way.
func groups(host []byte, gid uint32) (group, gshadow string) {
	_, gid = agentIDs(gid, gid)
	var names []string
	var out strings.Builder
	known := false
	for _, field := range systemEntries(host, 4) {
		known = known || field[2] == strconv.Itoa(int(gid))
		field[1], field[3] = "x", ""
		names = append(names, field[0])
		out.WriteString(strings.Join(field, ":") + "\n")
	}
	if !known {
		names = append(names, agentName)
		fmt.Fprintf(&out, "%s:x:%d:\n", agentName, gid)
	}
	return out.String(), locked(names, "::\n")
}

// locked is a shadow file in which no entry has a password, so no user can log in with one.
func locked(names []string, rest string) string {
	var out strings.Builder
	for _, name := range names {
		out.WriteString(name + ":" + lockedField + rest)
	}
	return out.String()
}

// systemEntries returns the fields of the system's lines in a passwd or group file. A user
// of the host that is called agent is left out, because the name is the sandbox's own.
func systemEntries(file []byte, fields int) [][]string {
	var entries [][]string
	for line := range bytes.Lines(file) {
		field := strings.Split(strings.TrimRight(string(line), "\n"), ":")
		if len(field) != fields || field[0] == agentName {
			continue
		}
		id, err := strconv.ParseUint(field[2], 10, 32)
		if err == nil && (id < firstHuman || id == nobodyID) {
			entries = append(entries, slices.Clone(field))
		}
	}
	return entries
}
