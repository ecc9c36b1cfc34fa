package gate

import (
	"crypto/tls"
	"errors"
	"slices"

	"clove.run/clove/egress/wire"
)

// Extensions that encrypt the name: encrypted_client_hello of RFC 9849, and
// encrypted_server_name of the drafts before it (draft-ietf-tls-esni-02 to -06).
const extensionECH, extensionESNI = 0xfe0d, 0xffce

// errHelloRead ends the handshake: crypto/tls has no function that parses a hello only.
var errHelloRead = errors.New("the hello was read")

// hello lets crypto/tls parse the client's hello and stops the handshake there.
func (r *recorder) hello() opening {
	var found *opening
	hidden := func(*tls.ClientHelloInfo) ([]tls.EncryptedClientHelloKey, error) {
		found = &opening{reason: wire.ReasonEncrypted}
		return nil, errHelloRead
	}
	config := &tls.Config{
		// Called before the extension is parsed, so a malformed one is detected too.
		GetEncryptedClientHelloKeys: hidden,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			found = judgeHello(hello)
			return nil, errHelloRead
		},
	}
	err := tls.Server(r, config).Handshake()
	if found == nil {
		reason := reasonOf(err)
		if reason == wire.ReasonNoName {
			reason = wire.ReasonMalformed // the client closed within the hello
		}
		found = &opening{reason: reason}
	}
	return *found
}

// judgeHello refuses an encrypted name even if there is a plain one too: the plain name is
// then a cover name, and the server uses the other.
func judgeHello(hello *tls.ClientHelloInfo) *opening {
	switch {
	case slices.Contains(hello.Extensions, extensionECH), slices.Contains(hello.Extensions, extensionESNI):
		return &opening{reason: wire.ReasonEncrypted}
	case hello.ServerName == "":
		return &opening{reason: wire.ReasonNoName}
	case !validName(hello.ServerName):
		return &opening{reason: wire.ReasonMalformed}
	}
	return &opening{name: hello.ServerName, shown: wire.ShownTLS}
}
