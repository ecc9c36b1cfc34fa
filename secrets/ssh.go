package secrets

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SSH says what a private key signs: that a user authenticates to a host.
type SSH struct {
	User string `json:"user,omitempty"` // on the hosts; empty: git
	// HostKeys are those that the hosts have, each as HOST:PORT TYPE KEY.
	HostKeys []string `json:"host_keys"`
}

const (
	defaultUser  = "git"
	sshPort      = "22"
	hostKeysMost = 64
)

// hostKeyTypes are those of plain keys: a certificate is not pinned.
var hostKeyTypes = []string{"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"}

// normalSSH are the terms of a private key in their one form.
func (t Terms) normalSSH() (Terms, error) {
	of := *t.SSH
	t.SSH = &of
	if len(t.Allow) > 0 || t.Header != "" || len(t.In) > 0 || t.Prefix != "" || t.CA != "" || t.Plain {
		return t, errors.New("an ssh key is in no request and in no file: it has no rules, header, other place, placeholder or CA")
	}
	if of.User == "" {
		of.User = defaultUser
	}
	if len(of.User) > 64 || strings.ContainsFunc(of.User, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return t, fmt.Errorf("%.64q is no user of ssh", of.User)
	}
	if len(of.HostKeys) > hostKeysMost {
		return t, fmt.Errorf("an ssh key has at most %d keys of hosts", hostKeysMost)
	}
	var known []string
	for _, text := range of.HostKeys {
		key, err := parseHostKey(text)
		if err != nil {
			return t, err
		}
		if !slices.Contains(t.Hosts, key.Host) {
			return t, fmt.Errorf("the key of %s is of none of the hosts", key.Host)
		}
		known = append(known, key.Host)
	}
	for _, host := range t.Hosts {
		if !slices.Contains(known, host) {
			return t, fmt.Errorf("no key of the host %s is given, by which it is known", host)
		}
	}
	of.HostKeys = slices.Sorted(slices.Values(of.HostKeys))
	return t, nil
}

// HostKey is the key of a host.
type HostKey struct {
	Host string // with the port
	Key  []byte // as ssh sends it
}

// Known are the keys of the hosts. The terms are Normal.
func (s SSH) Known() (all []HostKey) {
	for _, text := range s.HostKeys {
		if key, err := parseHostKey(text); err == nil {
			all = append(all, key)
		}
	}
	return all
}

// parseHostKey reads HOST:PORT TYPE KEY.
func parseHostKey(text string) (k HostKey, err error) {
	wrong := fmt.Errorf("%.80q is no key of a host: write HOST:PORT, its type (one of %s) and the key in base64", text, strings.Join(hostKeyTypes, ", "))
	parts := strings.Split(text, " ")
	if len(parts) != 3 || !slices.Contains(hostKeyTypes, parts[1]) || len(text) > 4096 {
		return k, wrong
	}
	if k.Host, err = normalHost(parts[0], sshPort); err != nil || k.Host != parts[0] {
		return k, wrong
	}
	k.Key, err = base64.StdEncoding.DecodeString(parts[2])
	begin := append(binary.BigEndian.AppendUint32(nil, uint32(len(parts[1]))), parts[1]...)
	if err != nil || !strings.HasPrefix(string(k.Key), string(begin)) {
		return k, wrong
	}
	return k, nil
}

// KnownHosts returns the keys that a text in the form of known_hosts (sshd(8)) has for hosts, each as HOST:PORT TYPE KEY. A name in it is
// whole, or hashed; patterns, authorities and keys that are revoked are passed over.
func KnownHosts(text string, hosts []string) (keys []string, err error) {
	var lines [][]string
	var revoked []string
	for line := range strings.Lines(text) {
		switch fields := strings.Fields(line); {
		case len(fields) > 3 && fields[0] == "@revoked":
			revoked = append(revoked, fields[3])
		case len(fields) > 2 && fields[0][0] != '#' && fields[0][0] != '@' && slices.Contains(hostKeyTypes, fields[1]):
			lines = append(lines, fields)
		}
	}
	for _, host := range hosts {
		found := len(keys)
		for _, line := range lines {
			if knows(line[0], shownHost(host)) && !slices.Contains(revoked, line[2]) {
				keys = append(keys, host+" "+line[1]+" "+line[2])
			}
		}
		if len(keys) == found {
			return nil, fmt.Errorf("there is no key of %s: write its line, as ssh-keyscan prints it", shownHost(host))
		}
	}
	return keys, nil
}

// knows reports whether the names of a line have a host.
func knows(names, host string) bool {
	return slices.ContainsFunc(strings.Split(names, ","), func(name string) bool {
		parts := strings.Split(name, "|")
		if len(parts) != 4 || parts[1] != "1" {
			return strings.EqualFold(name, host)
		}
		salt, err := base64.StdEncoding.DecodeString(parts[2])
		hash := hmac.New(sha1.New, salt)
		hash.Write([]byte(host))
		return err == nil && base64.StdEncoding.EncodeToString(hash.Sum(nil)) == parts[3]
	})
}

// shownHost is a host as known_hosts has it: without the port of ssh, or [NAME]:PORT.
func shownHost(host string) string {
	name, port := SplitHost(host)
	if port == sshPort {
		return name
	}
	return "[" + name + "]:" + port
}

// Methods of uses that are in no request of HTTP: a signature, whose path is the user on the host, and a file that the agent reads.
const (
	MethodSSH  = "ssh"
	MethodFile = "file"
)

// ShortTarget is Target without the port of HTTPS. That of ssh stays what it is: a host may have both.
func ShortTarget(method, host, path string) string {
	if method != MethodSSH {
		host = ShortHost(host)
	}
	return Target(method, host, path)
}

// Target is a use as people read it; without a host an operation of the ssh agent.
func Target(method, host, path string) string {
	switch {
	case method == MethodSSH && host == "":
		return "ssh agent: " + path
	case method == MethodSSH:
		return "ssh://" + path + "@" + strings.TrimSuffix(host, ":"+sshPort)
	case method == MethodFile && host == "":
		return "file " + path
	case method == "":
		return "https://" + host
	}
	return method + " https://" + host + path
}
