package archtest

import (
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "clove.run/clove/"

// tags are the build tags of the product.
const tags = "seccomp,urfave_cli_no_docs,netgo,osusergo,runc_nocriu"

// mayImport lists, for each package, what it may import inside clove. A package that is absent
// here fails the test, so that none is added without a decision.
var mayImport = []struct {
	pkg     string
	imports []string
	reason  string
}{
	{"agent", []string{"secrets", "internal/atomicfile", "internal/rlimits"}, "the vocabulary: everybody imports it, so it imports no more than leaves"},
	{"policies", []string{"agent", "policies/settings", "internal/document"}, "defaults and documents are values"},
	{"policies/settings", []string{"agent", "egress", "kernel/budget", "kernel/grant", "policies/host", "seccomp", "secrets", "internal/document", "internal/rlimits"}, "a setting is one row: every edge reads the table, so it knows no command line and no YAML"},
	{"policies/compare", []string{"agent", "egress", "policies/settings"}, "whether a child has more than its parent is a value; what a policy bounds, the settings compare"},
	{"policies/imports", []string{"agent", "egress", "internal/document", "policies", "policies/host", "policies/settings", "seccomp"}, "settings of other systems become a document, bytes to text"},
	{"policies/learn", []string{"agent", "egress", "internal/document", "policies", "policies/settings", "seccomp"}, "what a run used becomes a document; values in, text out"},
	{"policies/shadow", []string{"agent", "kernel/budget", "kernel/grant", "policies/settings"}, "what another policy would have refused is a value"},
	{"policies/host", []string{"agent"}, "a machine and a caller as a value"},
	{"policies/interpreter", []string{"agent", "policies/host"}, "looks at files, and knows no spec"},
	{"policies/advice", []string{"agent", "egress", "kernel/budget", "policies/resolve", "policies/settings", "seccomp", "secrets"}, "what would let a refused action pass is a value"},
	{"policies/expect", []string{"agent", "api/agents", "egress", "kernel/grant", "policies/probe", "policies/resolve", "policies/settings", "runtime", "internal/document"}, "says what a run would meet, with what decides in a run"},
	{"policies/resolve", []string{"agent", "egress", "loop/order", "policies", "policies/host", "policies/interpreter", "policies/settings", "seccomp", "internal/document", "internal/homedir"}, "every edge builds a spec with it, so it knows no command line"},
	{"policies/probe", nil, "what is tried inside a sandbox; it knows no policy"},
	{"policies/probe/reach", []string{"agent", "api", "api/agents", "client", "policies/probe"}, "what the probe tries over a network"},
	{"seccomp", nil, "a filter is data and serves any caller"},
	{"seccomp/observe", []string{"seccomp", "seccomp/notify"}, "what a caller meets is read from the kernel, and decides nothing"},
	{"seccomp/notify", nil, "a kernel leaf: calls and answers, and no policy"},
	{"cgroups", []string{"internal/pidfd"}, "a kernel leaf: a leaf never imports a leaf, nor the vocabulary of its users"},
	{"netns", []string{"internal/descriptor", "internal/nsthread", "internal/pidfd"}, "a kernel leaf"},
	{"landlock", nil, "a kernel leaf"},
	{"rootfs", []string{"rootfs/linked", "internal/atomicfile", "internal/descriptor", "internal/document", "internal/gitdir", "internal/homedir", "internal/nsthread", "internal/undo"}, "a kernel leaf; which of an agent's files clove itself would read is known to the reader of documents"},
	{"rootfs/linked", nil, "what a program is linked with is read from bytes; it knows no mount"},
	{"egress", []string{"agent"}, "the decision core has no sockets; its errors are for people"},
	{"egress/wire", []string{"internal/packet"}, "what two processes say is values and one connection"},
	{"egress/dnsmsg", nil, "a message format"},
	{"egress/resolver", []string{"egress/dnsmsg"}, "asks name servers, and decides nothing"},
	{"egress/broker", []string{"egress", "egress/dnsmsg", "egress/wire", "internal/descriptor"}, "root's side never meets what reads the agent's bytes"},
	{"egress/gate", []string{"egress/dnsmsg", "egress/wire", "kernel/channel", "kernel/socket", "internal/descriptor", "internal/passfd"}, "the side that may be taken over knows no rules"},
	{"egress/host", []string{"agent", "egress", "egress/broker", "egress/resolver", "egress/wire", "netns", "internal/beneath", "internal/confine/parent", "internal/nsthread", "internal/pidfd", "internal/undo"}, "a gate serves a network namespace, and knows of no run"},
	{"cmd/clove-gate", []string{"egress/gate", "egress/wire", "internal/confine"}, "the process that may be taken over stays small"},
	{"kernel/budget", []string{"agent"}, "decisions are pure: accounts and times are arguments"},
	{"kernel/grant", []string{"agent", "egress"}, "what covers what is a value; net means what --allow means"},
	{"models", nil, "types that its parts share"},
	{"models/config", []string{"agent", "kernel/budget", "kernel/grant", "models", "internal/document"}, "providers and prices are values; it opens no key and no connection"},
	{"models/scripted", []string{"agent", "kernel/grant", "models", "models/config", "internal/document"}, "answers from a file, and opens no connection"},
	{"models/format", []string{"models"}, "a format is values, and what parses an agent's bytes decides nothing"},
	{"models/usage", []string{"models"}, "what a provider's bytes report is values"},
	{"scheduler", []string{"agent"}, "decisions are pure: values in, values out"},
	{"store", []string{"agent", "kernel/budget", "kernel/grant", "internal/atomicfile", "internal/descriptor"}, "keeps the vocabulary's values and knows nothing of sandboxes"},
	{"audit", []string{"agent", "internal/atomicfile", "internal/descriptor", "internal/watch"}, "records what others decided, and knows nothing of how"},
	{"runtime", []string{"agent", "api", "api/agents", "cgroups", "egress", "egress/broker", "egress/host", "egress/resolver", "egress/swap", "egress/swap/link", "kernel/budget", "kernel/channel", "kernel/grant", "landlock", "netns", "oci/convert", "policies/shadow", "rootfs", "seccomp", "seccomp/notify", "seccomp/observe", "secrets", "store", "tools", "tools/inside", "internal/atomicfile", "internal/beneath", "internal/boottime", "internal/callout", "internal/creates", "internal/descriptor", "internal/fanotify", "internal/gitdir", "internal/gitpull", "internal/initproto", "internal/nsthread", "internal/pidfd", "internal/rlimits", "internal/sparse", "internal/undo"},
		"the one place where the leaves meet"},
	{"oci/convert", []string{"internal/rlimits"}, "a bundle's process and a local run's mean the same"},
	{"oci/container", []string{"oci/convert", "internal/creates", "internal/descriptor", "internal/passfd", "internal/pidfd"}, "a container is libcontainer's; what clove adds is decided by its callers"},
	{"oci", []string{"agent", "egress"}, "what a bundle's annotations mean is a value"},
	{"deploy/kubernetes", []string{"agent", "oci", "internal/document"}, "a run as a cluster's objects is a value"},
	{"deploy/node", []string{"agent", "oci", "internal/atomicfile", "internal/undo"}, "edits files; knows of clove only what they name"},
	{"oci/monitor", []string{"agent", "api", "api/methods", "cgroups", "client", "oci", "oci/container", "internal/atomicfile", "internal/boottime", "internal/lasting", "internal/pidfd"}, "what holds a container from outside needs no store and no sandbox"},
	{"kernel/service", []string{"agent", "api", "api/methods", "audit", "kernel/budget", "store"}, "the engine knows no service: it asks the stages through interfaces"},
	{"kernel/grants", []string{"agent", "api", "api/agents", "api/methods", "audit", "kernel/grant", "kernel/service", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/budgets", []string{"agent", "api", "api/agents", "api/methods", "kernel/budget", "kernel/service", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/ledger", []string{"agent", "api", "api/agents", "audit", "kernel/budget", "kernel/service", "store"}, "it gets grants and accounts as interfaces"},
	{"kernel/apply", []string{"agent", "api", "api/agents", "kernel/service"}, "it gets the files of runs as an interface"},
	{"kernel/handoff", []string{"agent", "api", "api/agents", "audit", "kernel/service", "store"}, "it gets grants and accounts as interfaces"},
	{"kernel/records", []string{"api", "api/agents", "audit", "kernel/grant", "kernel/service"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/blob", []string{"api", "store"}, "rows of blobs and what refers to them; opens no file"},
	{"kernel/blobs", []string{"agent", "api", "api/agents", "api/methods", "audit", "internal/atomicfile", "kernel/blob", "kernel/budget", "kernel/service", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/starts", []string{"agent", "kernel/service", "store"}, "turns and bounds; does not know for what runs are started"},
	{"kernel/lease", []string{"agent", "api", "kernel/blob", "store"}, "rows and their order; knows no agent's rights"},
	{"kernel/events", []string{"agent", "api", "api/agents", "api/methods", "audit", "kernel/budget", "kernel/lease", "kernel/service", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/mail", []string{"agent", "api", "api/agents", "api/methods", "audit", "kernel/blob", "kernel/budget", "kernel/grant", "kernel/lease", "kernel/service", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/jobs", []string{"agent", "api", "api/agents", "api/methods", "kernel/blob", "kernel/budget", "kernel/grant", "kernel/lease", "kernel/service", "kernel/starts", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/approvals", []string{"agent", "api", "api/agents", "api/methods", "audit", "kernel/service", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/names", []string{"agent", "api", "api/agents", "api/methods", "kernel/grant", "kernel/service", "kernel/starts", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/state", []string{"agent", "api", "api/agents", "api/methods", "kernel/blob", "kernel/grant", "kernel/lease", "kernel/service", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"kernel/spawn", []string{"agent", "api", "api/agents", "api/methods", "kernel/budget", "kernel/grant", "kernel/service", "loop/order", "policies/compare", "store"}, "a service knows the engine, and gets grants, accounts and runs as interfaces"},
	{"kernel", []string{"agent", "api", "api/agents", "api/methods", "audit", "kernel/apply", "kernel/approvals", "kernel/blob", "kernel/blobs", "kernel/budget", "kernel/budgets", "kernel/channel", "kernel/events", "kernel/grant", "kernel/grants", "kernel/handoff", "kernel/jobs", "kernel/lease", "kernel/ledger", "kernel/mail", "kernel/names", "kernel/records", "kernel/secrets", "kernel/service", "kernel/spawn", "kernel/starts", "kernel/state", "kernel/tools", "store", "tools"}, "lists the services and hands them to each other; knows no sandbox"},
	{"kernel/channel", []string{"api", "internal/packet"}, "what two processes say is values and one connection"},
	{"kernel/socket", []string{"api", "api/agents", "kernel/channel", "internal/rpc"}, "the side that may be taken over decides nothing"},
	{"api", []string{"agent", "secrets", "tools"}, "a contract is values"},
	{"api/agents", []string{"api"}, "rows are values; what decodes an agent's bytes imports these alone"},
	{"api/methods", []string{"api", "api/agents"}, "rows are values"},
	{"api/contract", []string{"api", "api/methods"}, "compares tables, and calls nothing"},
	{"models", nil, "words"},
	{"loop", []string{"loop/conversation", "loop/model", "loop/order", "loop/tools"}, "runs inside with the agent's rights, and knows nothing of clove"},
	{"loop/conversation", []string{"loop/model"}, "a file of messages"},
	{"loop/model", nil, "a client of two published formats"},
	{"loop/order", nil, "clove and its loop share the words alone"},
	{"loop/tools", []string{"loop/model", "tools/builtin"}, "processes and files, no protection; its files are those of clove-tool"},
	{"cmd/clove-loop", []string{"loop", "loop/conversation", "loop/model", "loop/order", "loop/tools"}, "the program inside has nothing of clove's but the loop"},
	{"models/attach", []string{"agent", "internal/packet", "internal/passfd"}, "a supervisor's way to cloved with a listener"},
	{"models/control", []string{"agent", "api", "kernel/budget", "kernel/ledger", "models", "models/config", "models/link", "models/queue", "models/route", "secrets", "internal/confine/keep", "internal/confine/parent", "internal/descriptor", "internal/packet", "internal/passfd", "internal/pidfd"}, "root's side never meets what parses"},
	{"models/front", []string{"agent", "models", "models/format", "models/link", "models/scripted", "internal/bounded", "internal/packet"}, "the side that may be taken over knows no key and no rule"},
	{"models/link", []string{"agent", "models"}, "what processes say is values"},
	{"models/queue", nil, "decides whose turn it is; pure"},
	{"models/route", nil, "decides which target serves; pure"},
	{"models/upstream", []string{"models", "models/link", "models/usage", "secrets/redact", "internal/packet"}, "the side with the keys meets no parser of agents' bytes"},
	{"cmd/clove-models", []string{"models/front", "internal/confine"}, "the process that may be taken over stays small"},
	{"tools", nil, "types that its parts share; the API's values have them"},
	{"tools/link", nil, "messages are values"},
	{"tools/builtin", []string{"tools", "internal/gitdir"}, "what a tool does, in a sandbox; nothing of root's side"},
	{"tools/schema", []string{"tools"}, "a schema decides about values"},
	{"cmd/clove-tool", []string{"tools", "tools/builtin", "tools/schema"}, "what runs in sandboxes stays small"},
	{"tools/inside", []string{"agent", "api", "tools", "internal/packet"}, "a caller's way into a sandbox, with pipes that neither side reads"},
	{"tools/control", []string{"agent", "kernel/channel", "tools/link", "internal/confine/keep", "internal/packet"}, "root's side never meets what parses"},
	{"kernel/tools", []string{"agent", "api", "api/agents", "api/methods", "kernel/budget", "kernel/ledger", "kernel/service", "store", "tools"}, "decides and records; where tools run is an interface"},
	{"tools/mcp", []string{"api", "api/agents", "kernel/channel", "tools", "tools/link", "internal/bounded", "internal/packet", "internal/passfd"}, "the side that may be taken over decides nothing: it knows no grant, and starts no tool"},
	{"tools/people", []string{"agent", "api", "api/methods", "client", "tools"}, "tools over cloved's API with a user's rights; it knows no MCP and opens no file"},
	{"tools/clients", []string{"tools"}, "bytes to bytes; it opens no file"},
	{"cmd/clove-mcp", []string{"tools/mcp", "internal/confine"}, "the process that may be taken over stays small"},
	{"cmd/clove-upstream", []string{"models/link", "models/upstream", "internal/confine"}, "the process with the keys stays small"},
	{"bench", []string{"agent", "internal/atomicfile", "internal/descriptor"}, "the types of results and manifests, for their writers and readers"},
	{"bench/files", nil, "copies and hashes trees of any origin"},
	{"bench/suite", []string{"agent", "bench/files", "policies", "internal/document"}, "a suite is a value; it knows no sandbox"},
	{"bench/plan", []string{"agent", "bench", "bench/suite"}, "which attempts are left is decided from values"},
	{"bench/grade", []string{"agent", "bench", "bench/suite"}, "reads what an attempt left, and executes nothing"},
	{"bench/machine", []string{"bench"}, "reads the host, and changes nothing"},
	{"bench/run", []string{"agent", "bench", "bench/files", "bench/grade", "bench/machine", "bench/plan", "bench/suite", "policies", "policies/resolve", "policies/host", "policies/settings"}, "asks for specs as a command line does; its caller has the sandboxes"},
	{"bench/harbor", []string{"agent", "bench/files", "bench/suite", "policies", "internal/document"}, "folders to a suite; it executes and fetches nothing"},
	{"bench/stats", nil, "numbers to numbers"},
	{"bench/compare", []string{"agent", "bench", "bench/stats"}, "results to differences"},
	{"bench/report", []string{"bench", "bench/compare", "bench/stats"}, "results to text"},
	{"client", []string{"agent", "api", "api/agents", "api/methods", "internal/passfd", "internal/rpc"}, "what programs import brings nothing of the daemon along"},
	{"daemon", []string{"agent", "api", "api/agents", "api/methods", "audit", "daemon/logs", "daemon/metrics", "daemon/supervisor", "daemon/traces", "egress", "kernel", "kernel/budget", "kernel/channel", "kernel/service", "kernel/spawn", "models", "models/attach", "models/config", "models/control", "policies/host", "policies/resolve", "policies/settings", "runtime", "scheduler", "seccomp", "secrets/sealed", "secrets/sshkey", "store", "tools/control", "tools/inside", "internal/descriptor", "internal/document", "internal/lasting", "internal/nsthread", "internal/passfd", "internal/pidfd", "internal/rlimits", "internal/rpc", "internal/watch"},
		"sees sandboxes through its own interface, and starts none itself"},
	{"daemon/logs", []string{"api", "internal/watch"}, "files of lines; both ends of them"},
	{"daemon/metrics", []string{"agent", "api", "api/methods", "models", "models/link", "scheduler"}, "counters of what it is told"},
	{"daemon/traces", []string{"agent", "api", "api/methods", "daemon/supervisor", "models"}, "spans of what it is told"},
	{"daemon/traces/tracetest", nil, "what tests need of a collector"},
	{"daemon/supervisor", []string{"agent", "api", "api/methods", "client", "daemon/logs", "models/attach", "runtime", "internal/passfd", "internal/rpc", "internal/undo", "internal/watch"}, "one detached run; knows no callers and no store"},
	{"cmd/cloved", []string{"agent", "daemon", "daemon/traces", "runtime"}, "flags to one call"},
	{"cmd/clove", []string{"agent", "api", "api/agents", "api/contract", "api/methods", "audit", "bench", "bench/compare", "bench/harbor", "bench/machine", "bench/plan", "bench/report", "bench/run", "bench/suite", "client", "cmd/clove/verbs", "daemon/logs", "daemon/supervisor", "deploy/kubernetes", "deploy/node", "egress", "kernel", "kernel/budget", "kernel/channel", "kernel/grant", "loop/order", "models/attach", "models/config", "models/control", "policies", "policies/advice", "policies/expect", "policies/host", "policies/imports", "policies/interpreter", "policies/learn", "policies/probe", "policies/probe/reach", "policies/resolve", "policies/settings", "policies/shadow", "rootfs", "runtime", "seccomp", "secrets", "secrets/sealed", "tools", "tools/clients", "tools/control", "tools/inside", "tools/link", "tools/people", "internal/atomicfile", "internal/bundle", "internal/callout", "internal/confine/parent", "internal/descriptor", "internal/document", "internal/gitdir", "internal/homedir", "internal/lasting", "internal/packet", "internal/prompt", "internal/screen", "internal/sparse"}, "flags to calls"},
	{"cmd/clove/verbs", nil, "usage lines and tags of results are values; it knows no command"},
	{"oci/guard", []string{"agent", "api", "api/methods", "client", "netns", "internal/descriptor", "internal/pidfd"}, "a container's side of its network rules; knows no gate"},
	{"cmd/clove-oci", []string{"agent", "api", "oci", "oci/monitor", "oci/container", "oci/guard", "policies/resolve", "policies/host", "internal/creates"}, "engines start it twice for each container: flags to calls, the ceiling of the host, and nothing of agents that live here"},
	{"cmd/clove-init", []string{"internal/boottime", "internal/descriptor", "internal/initproto", "internal/rlimits"}, "PID 1 of every sandbox stays tiny"},
	{"tools", nil, "types, a table and templates: every part of it, and every side, imports it"},
	{"tools/link", nil, "messages are values"},
	{"tools/schema", []string{"tools"}, "bytes to an answer, with the bounds of the types"},
	{"tools/builtin", []string{"tools", "internal/gitdir"}, "runs inside with the agent's rights, and knows nothing of clove but which settings of git name no program"},
	{"cmd/clove-tool", []string{"tools", "tools/builtin", "tools/schema"}, "the program inside has nothing of clove's but the tools"},
	{"sdk", nil, "tests of clients in other languages"},
	{"internal/atomicfile", nil, "a leaf"},
	{"internal/beneath", []string{"internal/descriptor"}, "paths of others, opened"},
	{"internal/boottime", []string{"internal/descriptor"}, "a clock"},
	{"internal/bounded", nil, "a leaf"},
	{"internal/bundle", nil, "an archive of what it is given"},
	{"internal/callout", []string{"agent", "internal/nsthread", "internal/rlimits"}, "the command of a user is a value, and the caller decides when it runs"},
	{"secrets", nil, "what is said of secrets, for every edge: it never sees a value"},
	{"secrets/sshkey", nil, "the library of ssh has one place; it reads keys, and knows nothing of runs"},
	{"secrets/redact", nil, "what looks for values in bytes knows of nothing else"},
	{"secrets/sealed", []string{"agent"}, "the key stays in one package"},
	{"kernel/secrets", []string{"agent", "api", "api/methods", "kernel/service", "secrets", "store"}, "a service knows the engine and its own decisions, and no other service"},
	{"egress/swap", []string{"egress/swap/link", "internal/confine/parent", "internal/packet", "internal/passfd", "internal/undo"}, "root's side never meets what reads the agent's bytes, nor a value"},
	{"egress/swap/link", []string{"secrets"}, "messages are values"},
	{"egress/swap/outer", []string{"egress/swap/link", "secrets", "internal/descriptor", "internal/packet"}, "the side that parses what the agent sends meets no secret"},
	{"egress/swap/inner", []string{"egress/swap/link", "secrets", "secrets/redact", "secrets/sshkey", "internal/packet"}, "the side with the secrets meets no parser of the agent's bytes"},
	{"cmd/clove-swap", []string{"egress/swap/inner", "egress/swap/link", "egress/swap/outer", "internal/confine", "internal/packet"}, "a process without rights stays small"},
	{"internal/confine", []string{"internal/descriptor", "internal/packet"}, "what takes rights away brings nothing along but its channel"},
	{"internal/confine/parent", []string{"internal/nsthread"}, "the other side of confine"},
	{"internal/creates", []string{"internal/descriptor"}, "notes that one program writes and another reads"},
	{"internal/descriptor", nil, "a leaf"},
	{"internal/document", []string{"agent"}, "one reader of what people write; its errors are for them"},
	{"internal/fanotify", nil, "a leaf"},
	{"internal/generate", []string{"api", "api/agents", "api/methods", "policies", "policies/resolve"}, "rows to text; with the standard level as a value"},
	{"internal/gitdir", []string{"internal/beneath"}, "it reads files, and starts no git"},
	{"internal/gitpull", []string{"internal/gitdir", "internal/nsthread"}, "objects are read from whatever has them"},
	{"internal/homedir", []string{"internal/beneath"}, "looks at files, with the rights of the calling thread"},
	{"internal/initproto", []string{"internal/passfd", "internal/rlimits"}, "a protocol is values and one connection"},
	{"internal/lasting", nil, "a leaf"},
	{"internal/nsthread", nil, "a leaf"},
	{"internal/packet", []string{"internal/passfd"}, "a channel, whatever is said on it"},
	{"internal/confine/keep", []string{"agent", "internal/confine/parent", "internal/descriptor", "internal/packet", "internal/pidfd"}, "keeps processes, whatever they serve"},
	{"internal/passfd", nil, "a leaf"},
	{"internal/pidfd", nil, "a leaf"},
	{"internal/rlimits", nil, "a table"},
	{"internal/rpc", nil, "a protocol is values and one connection"},
	{"internal/prompt", nil, "questions to a person at an agent's terminal"},
	{"internal/screen", nil, "bytes to bytes"},
	{"internal/sparse", nil, "files to archives and back"},
	{"internal/undo", nil, "a leaf"},
	{"internal/watch", nil, "a leaf"},
	{"internal/archtest", nil, "a test"},
	{"internal/doctest", nil, "what tests need of the documents"},
	{"internal/kubetest", []string{"oci"}, "what tests need of Kubernetes"},
	{"internal/linear", []string{"agent", "api", "api/methods", "client"}, "a test's view of cloved is a client's"},
	{"internal/ocitest", []string{"internal/nsthread", "internal/testhost"}, "what tests need of an OCI runtime's command line"},
	{"internal/testhost", nil, "what tests need of a machine"},
}

// owners lists the package that may import each heavy library outside of tests (a few have
// two, with a reason): a library that many packages import can never be replaced.
var owners = []struct {
	library string
	owner   string
	reason  string
}{
	{"github.com/opencontainers/runc", "runtime oci/container oci/convert", "libcontainer promises no stable interface; bundles do not pay for what agents need"},
	{"github.com/opencontainers/cgroups", "runtime oci/container", "comes with libcontainer; the writers of limits"},
	{"github.com/opencontainers/selinux", "oci/container", "comes with libcontainer"},
	{"github.com/sirupsen/logrus", "oci/container", "libcontainer writes to it, and shims read it"},
	{"github.com/containerd/cgroups/v3", "cgroups", "one reader of limits"},
	{"github.com/vishvananda/netlink", "netns", "networks are made in one place"},
	{"github.com/landlock-lsm/go-landlock", "landlock", "rules of files are made in one place"},
	{"github.com/google/nftables", "netns", "rules are made in one place"},
	{"github.com/miekg/dns", "egress/dnsmsg internal/ocitest", "one reader of DNS messages; and a server for tests"},
	{"github.com/moby/profiles/seccomp", "seccomp", "filters are made in one place"},
	{"github.com/seccomp/libseccomp-golang", "seccomp", "names, numbers and programs of filters come from one place"},
	{"github.com/google/jsonschema-go", "tools/schema", "schemas are compiled and checked behind bounds of one place"},
	{"go.etcd.io/bbolt", "store", "one file, one schema, one owner"},
	{"gonum.org/v1/gonum", "bench/stats", "statistics have one place"},
	{"golang.org/x/crypto", "secrets/sshkey", "keys of ssh are read, and used, in one place"},
	{"golang.org/x/mod", "audit", "one tree of hashes, one format of signed notes"},
	{"github.com/netresearch/go-cron", "scheduler", "schedules are kept in one place"},
	{"github.com/prometheus/client_golang", "daemon/metrics", "counters have one table"},
	{"github.com/prometheus/common", "daemon/metrics", "comes with the counters"},
	{"go.opentelemetry.io/otel", "daemon/traces", "spans are made in one place"},
	{"go.opentelemetry.io/proto/otlp", "daemon/traces/tracetest", "only tests read what a collector gets"},
	{"go.yaml.in/yaml/v3", "internal/document", "one reader of what people write"},
	{"github.com/pelletier/go-toml/v2", "bench/harbor deploy/node policies/imports tools/clients", "one reader of containerd's configuration, one of Codex's, one of Harbor's, and one that checks what was put into Codex's"},
	{"github.com/coreos/go-systemd/v22", "daemon oci/container", "what the service manager hands down: to cloved, and through to a container"},
	{"github.com/urfave/cli/v2", "cmd/clove cmd/clove-oci", "flags end at the edges"},
	{"github.com/containerd/console", "runtime oci/container", "terminals are taken over in two places, for two kinds of process"},
	{"github.com/go-json-experiment/json", "internal/rpc models/format", "lines of sockets and requests of models are read token by token; the standard library has it from Go 1.27"},
	{"github.com/modelcontextprotocol/go-sdk", "tools/mcp", "what reads MCP has no rights"},
	{"github.com/anishathalye/porcupine", "internal/linear", "one model of the API; for tests only"},
	{"k8s.io/api", "internal/kubetest", "for tests only: it would make clove several megabytes larger"},
	{"k8s.io/apimachinery", "internal/kubetest", "comes with the API's types"},
	{"sigs.k8s.io/agent-sandbox", "internal/kubetest", "for tests only"},
	{"github.com/aymanbagabas/go-udiff", "cmd/clove", "patches of clove diff; its search is bounded, for files that an agent chose"},
	{"github.com/docker/go-units", "cmd/clove cmd/clove-oci kernel/budget policies/advice policies/settings", "sizes that are shown, also in errors, and those of runc's own flags; agent.ParseSize reads clove's"},
}

type listed struct {
	ImportPath string
	Imports    []string
}

// packages returns every package of the module with its direct imports.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-tags", tags, "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("cannot list packages: %v: %s", err, failed.Stderr)
		}
		t.Fatalf("cannot list packages: %v", err)
	}
	found := map[string][]string{}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for decoder.More() {
		var p listed
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(p.ImportPath, module)] = p.Imports
	}
	return found
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	t.Parallel()
	found := packages(t)
	for _, rule := range mayImport {
		for _, path := range found[rule.pkg] {
			inside, ours := strings.CutPrefix(path, module)
			if ours && !slices.Contains(rule.imports, inside) {
				t.Errorf("%s imports %s, but %s", rule.pkg, inside, rule.reason)
			}
		}
		delete(found, rule.pkg)
	}
	for pkg := range found {
		if !strings.HasPrefix(pkg, "integration") {
			t.Errorf("%s has no row in mayImport", pkg)
		}
	}
}

func TestEachHeavyLibraryHasOneOwner(t *testing.T) {
	t.Parallel()
	found := packages(t)
	for _, rule := range owners {
		used := false
		for pkg, imports := range found {
			for _, path := range imports {
				if path != rule.library && !strings.HasPrefix(path, rule.library+"/") {
					continue
				}
				owner := slices.Contains(strings.Fields(rule.owner), pkg)
				used = used || owner
				if !owner {
					t.Errorf("%s imports %s, which belongs to %s: %s", pkg, path, rule.owner, rule.reason)
				}
			}
		}
		if !used {
			t.Errorf("no package imports %s: take it out of the table and of go.mod", rule.library)
		}
	}
}

// heavy are libraries that only cloved may be linked with: every launch starts clove twice,
// and there are a clove, a clove-init and a clove-gate for each agent.
var heavy = []string{"github.com/prometheus/", "go.opentelemetry.io/", "google.golang.org/grpc"}

func TestOnlyClovedIsHeavy(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		program string
		heavy   bool
	}{{"cmd/clove", false}, {"cmd/clove-init", false}, {"cmd/clove-gate", false}, {"cmd/clove-loop", false}, {"cmd/clove-mcp", false}, {"cmd/clove-models", false}, {"cmd/clove-swap", false}, {"cmd/clove-tool", false}, {"cmd/clove-upstream", false}, {"cmd/clove-oci", false}, {"cmd/cloved", true}} {
		out, err := exec.Command("go", "list", "-deps", "-tags", tags, module+row.program).Output()
		if err != nil {
			t.Fatalf("cannot list what %s is linked with: %v", row.program, err)
		}
		for _, library := range heavy {
			linked := slices.ContainsFunc(strings.Split(string(out), "\n"), func(pkg string) bool { return strings.HasPrefix(pkg, library) })
			if linked != row.heavy {
				t.Errorf("%s is linked with %s: %t", row.program, library, linked)
			}
		}
	}
}

// pure lists the packages that get everything as values. They must not import packages that
// act or wait.
var pure = []string{"kernel/budget", "models/format", "models/route", "models/usage", "scheduler"}

var effects = []string{"bufio", "context", "io", "log", "net", "os", "runtime", "sync", "syscall"}

func TestPurePackagesDoNothing(t *testing.T) {
	t.Parallel()
	found := packages(t)
	for _, pkg := range pure {
		for _, path := range found[pkg] {
			if root, _, _ := strings.Cut(path, "/"); slices.Contains(effects, root) {
				t.Errorf("%s imports %s, but it decides and does nothing", pkg, path)
			}
		}
	}
}
