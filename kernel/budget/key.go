package budget

import (
	"strconv"
	"strings"

	"clove.run/clove/agent"
)

// Key names an account: UID, UID/ns:NAMESPACE, UID/name:NAME, UID/provider:NAME or UID/run:ID.
// UID is the user who owns everything below it.
type Key string

// OwnerKey is the account of a user.
func OwnerKey(uid uint32) Key { return Key(strconv.FormatUint(uint64(uid), 10)) }

// NamespaceKey is the account of a namespace, for example "acme/research".
func NamespaceKey(uid uint32, namespace string) Key { return OwnerKey(uid) + Key("/ns:"+namespace) }

// NameKey is the account of all runs that have a name, one after the other.
func NameKey(uid uint32, name string) Key { return OwnerKey(uid) + Key("/name:"+name) }

// RunKey is the account of one run.
func RunKey(uid uint32, id agent.ID) Key { return OwnerKey(uid) + Key("/run:"+string(id)) }

// ProviderKey is the account of what all runs of a user spend at a provider of models.
func ProviderKey(uid uint32, provider string) Key {
	return OwnerKey(uid) + Key("/"+kindProvider+":"+provider)
}

const kindProvider = "provider"

// maxNamespace bounds the bytes of a namespace's path.
const maxNamespace = 255

// Owner returns the user that k is below; false where k is not a key.
func (k Key) Owner() (uid uint32, ok bool) {
	user, rest, below := strings.Cut(string(k), "/")
	number, err := strconv.ParseUint(user, 10, 32)
	if err != nil || string(OwnerKey(uint32(number))) != user {
		return 0, false
	}
	return uint32(number), !below || soundPart(rest)
}

// Run returns the run whose account k is; false: it is another account.
func (k Key) Run() (agent.ID, bool) {
	run, found := k.part("run")
	return agent.ID(run), found
}

// ofRun reports whether k is the account of a run.
func (k Key) ofRun() bool { _, found := k.part("run"); return found }

// Provider returns the provider of models that k is of; false: it is another account.
func (k Key) Provider() (name string, ok bool) { return k.part(kindProvider) }

// part returns the name below the owner, where it is of a kind. Names may have "/" and ":".
func (k Key) part(kind string) (name string, ok bool) {
	_, rest, _ := strings.Cut(string(k), "/")
	return strings.CutPrefix(rest, kind+":")
}

// soundPart reports whether text is the part of a key below its owner.
func soundPart(text string) bool {
	kind, name, _ := strings.Cut(text, ":")
	switch kind {
	case "ns":
		return soundNamespace(name)
	case "name":
		return agent.ValidateName(name) == nil
	case kindProvider:
		return soundProvider(name)
	case "run":
		return agent.ID(name).Valid()
	}
	return false
}

// maxProvider bounds the bytes of a provider's name.
const maxProvider = 128

// soundProvider reports whether models.yaml may have a provider of this name.
func soundProvider(name string) bool {
	return name != "" && len(name) <= maxProvider && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-/:") == ""
}

// soundNamespace reports whether each step of the path is a name.
func soundNamespace(text string) bool {
	for step := range strings.SplitSeq(text, "/") {
		if agent.ValidateName(step) != nil {
			return false
		}
	}
	return len(text) <= maxNamespace
}
