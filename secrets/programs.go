package secrets

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// BundleVariables lead programs to a file of all authorities.
var BundleVariables = []string{
	"SSL_CERT_FILE",                    // OpenSSL, Go, Python, Ruby
	"REQUESTS_CA_BUNDLE",               // Python's requests
	"CURL_CA_BUNDLE",                   // curl
	"AWS_CA_BUNDLE",                    // AWS's clients
	"PIP_CERT",                         // pip
	"GIT_SSL_CAINFO",                   // git
	"CARGO_HTTP_CAINFO",                // cargo
	"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", // gRPC
}

// AuthorityVariable leads Node to authorities beside its own.
const AuthorityVariable = "NODE_EXTRA_CA_CERTS"

// ProgramSettings are what has programs find placeholders.
type ProgramSettings struct {
	Env   []string
	Files map[string]string // texts, by their names in Dir
	// Dir is where the files are, inside.
	Dir  string
	used map[string]string // what was set, by program
}

// Add has a program find a placeholder.
func (p *ProgramSettings) Add(program string, t Terms, placeholder string) error {
	if len(t.Hosts) == 0 {
		return errors.New("the secret has no host")
	}
	if p.used == nil {
		p.used = map[string]string{}
	}
	if p.Files == nil {
		p.Files = map[string]string{}
	}
	host := ShortHost(t.Hosts[0])
	if t.Header != DefaultHeader {
		return fmt.Errorf("%s sends its token in the header %s, and the secret is for %s", program, DefaultHeader, t.Header)
	}
	if program == "git" {
		p.git(t.Hosts, placeholder)
		return nil
	}
	if p.used[program] != "" {
		return fmt.Errorf("%s finds one secret", program)
	}
	p.used[program] = host
	switch program {
	case "npm":
		// Its global configuration: the user's own comes before that. A variable would be //HOST/:_authToken, and shells drop such names.
		p.Files["npmrc"] = "registry=https://" + host + "/\n//" + host + "/:_authToken=" + placeholder + "\n"
		p.Env = append(p.Env, "NPM_CONFIG_GLOBALCONFIG="+p.Dir+"/npmrc")
	case "pip":
		p.Env = append(p.Env, "PIP_INDEX_URL=https://__token__:"+placeholder+"@"+host+"/simple/")
	case "gh":
		if host == "github.com" || host == "api.github.com" {
			if !slices.ContainsFunc(t.Hosts, func(host string) bool { return ShortHost(host) == "api.github.com" }) {
				return errors.New("gh sends GitHub's token to api.github.com, which is none of the secret's hosts")
			}
			p.Env = append(p.Env, "GH_TOKEN="+placeholder)
		} else {
			p.Env = append(p.Env, "GH_ENTERPRISE_TOKEN="+placeholder, "GH_HOST="+host)
		}
	default:
		return fmt.Errorf("%.32q is no program that finds a secret by itself", program)
	}
	return nil
}

// SSH has ssh find the agent that signs, and git's ssh the keys of the hosts.
func (p *ProgramSettings) SSH(of SSH) {
	const known = "ssh_known_hosts"
	if p.Files == nil {
		p.Files = map[string]string{}
	}
	if p.Files[known] == "" {
		p.Env = append(p.Env, "SSH_AUTH_SOCK="+p.Dir+"/ssh.sock", "GIT_SSH_COMMAND=ssh -o GlobalKnownHostsFile="+p.Dir+"/"+known)
	}
	for _, text := range of.HostKeys {
		host, key, _ := strings.Cut(text, " ")
		p.Files[known] += shownHost(host) + " " + key + "\n"
	}
}

// git has git answer a server's question for a name and a password by itself. Its configuration is counted, and so continues where
// that of another secret has ended.
func (p *ProgramSettings) git(hosts []string, placeholder string) {
	count, _ := strconv.Atoi(p.used["git"])
	for _, host := range hosts {
		at := strconv.Itoa(count)
		p.Env = append(p.Env, "GIT_CONFIG_KEY_"+at+"=credential.https://"+ShortHost(host)+".helper",
			"GIT_CONFIG_VALUE_"+at+"=!f() { echo username=x-access-token; echo password="+placeholder+"; }; f")
		count++
	}
	p.used["git"] = strconv.Itoa(count)
	p.Env = slices.DeleteFunc(p.Env, func(line string) bool { return strings.HasPrefix(line, "GIT_CONFIG_COUNT=") })
	p.Env = append(p.Env, "GIT_CONFIG_COUNT="+strconv.Itoa(count))
}
