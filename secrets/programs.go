package secrets

import (
	"errors"
	"fmt"
	"strconv"
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

// ForProgram returns the variables with which a program finds a placeholder. used has what those before have set, by
// program.
func ForProgram(program string, t Terms, placeholder string, used map[string]string) ([]string, error) {
	if len(t.Hosts) == 0 {
		return nil, errors.New("the secret has no host")
	}
	host := ShortHost(t.Hosts[0])
	if t.Header != DefaultHeader {
		return nil, fmt.Errorf("%s sends its token in the header %s, and the secret is for %s", program, DefaultHeader, t.Header)
	}
	switch program {
	case "git":
		return gitVariables(t.Hosts, placeholder, used), nil
	case "npm":
		if used["npm"] != "" {
			return nil, errors.New("npm finds one secret")
		}
		used["npm"] = host
		// npm reads each variable that begins so as a line of its configuration, whatever its name is.
		return []string{"npm_config_//" + host + "/:_authToken=" + placeholder, "npm_config_registry=https://" + host + "/"}, nil
	case "pip":
		if used["pip"] != "" {
			return nil, errors.New("pip finds one secret")
		}
		used["pip"] = host
		return []string{"PIP_INDEX_URL=https://__token__:" + placeholder + "@" + host + "/simple/"}, nil
	case "gh":
		if used["gh"] != "" {
			return nil, errors.New("gh finds one secret")
		}
		used["gh"] = host
		if host == "github.com" || host == "api.github.com" {
			return []string{"GH_TOKEN=" + placeholder}, nil
		}
		return []string{"GH_ENTERPRISE_TOKEN=" + placeholder, "GH_HOST=" + host}, nil
	}
	return nil, fmt.Errorf("%.32q is no program that finds a secret by itself", program)
}

// gitVariables have git answer a server's question for a name and a password by itself. Its configuration is counted, and so continues
// where that of another secret has ended.
func gitVariables(hosts []string, placeholder string, used map[string]string) (env []string) {
	count, _ := strconv.Atoi(used["git"])
	for _, host := range hosts {
		at := strconv.Itoa(count)
		env = append(env, "GIT_CONFIG_KEY_"+at+"=credential.https://"+ShortHost(host)+".helper",
			"GIT_CONFIG_VALUE_"+at+"=!f() { echo username=x-access-token; echo password="+placeholder+"; }; f")
		count++
	}
	used["git"] = strconv.Itoa(count)
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(count), "GIT_TERMINAL_PROMPT=0")
}
