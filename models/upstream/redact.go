package upstream

import "bytes"

// redactor takes a provider's key out of what the provider sends. Some servers repeat a key
// that they refuse, and nothing that an agent reads has it.
type redactor struct {
	key  []byte
	held []byte // the end of what came: it may be the beginning of the key
}

// redacted stands in the place of a key.
const redacted = "[key]"

// minKey is the shortest key that is looked for: a word such as "none", for a server that
// checks no key, is in many answers.
const minKey = 8

func newRedactor(key string) *redactor {
	if len(key) < minKey {
		return &redactor{}
	}
	return &redactor{key: []byte(key)}
}

// next returns what may be passed on of the bytes so far. It is valid until the next call.
func (r *redactor) next(p []byte) []byte {
	if len(r.key) == 0 {
		return p
	}
	all := bytes.ReplaceAll(append(r.held, p...), r.key, []byte(redacted))
	keep := r.prefix(all)
	r.held = bytes.Clone(all[len(all)-keep:])
	return all[:len(all)-keep]
}

// rest returns what was held back, at the end of an answer.
func (r *redactor) rest() []byte { return r.held }

// prefix is how many bytes at the end of text begin the key.
func (r *redactor) prefix(text []byte) int {
	for n := min(len(r.key)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, r.key[:n]) {
			return n
		}
	}
	return 0
}
