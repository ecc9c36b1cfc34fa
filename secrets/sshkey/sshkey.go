package sshkey

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"
)

// Key is a private key.
type Key struct {
	signer     ssh.AlgorithmSigner
	algorithms []string
}

// rsaLeast is the least size of an RSA key, in bits: OpenSSH's servers take no smaller one by now.
const rsaLeast = 2048

// Read reads a private key. No error has a part of it.
func Read(text []byte) (*Key, error) {
	raw, err := ssh.ParseRawPrivateKey(text)
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		return nil, errors.New("the key has a passphrase: take it from a copy, with ssh-keygen -p -N '' -f COPY")
	}
	if err != nil {
		return nil, errors.New("it is no private key of ssh: give the file that ssh-keygen makes, not the one that ends with .pub")
	}
	signer, err := ssh.NewSignerFromKey(raw)
	if err != nil {
		return nil, errors.New("no such key can sign")
	}
	k := &Key{algorithms: []string{signer.PublicKey().Type()}}
	switch k.algorithms[0] {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
	case ssh.KeyAlgoRSA:
		if bits := raw.(*rsa.PrivateKey).N.BitLen(); bits < rsaLeast {
			return nil, fmt.Errorf("the key has %d bits: use one of at least %d, or ed25519", bits, rsaLeast)
		}
		k.algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	default:
		return nil, fmt.Errorf("keys %s cannot be used: use ed25519, ecdsa or rsa", k.algorithms[0])
	}
	var ok bool
	if k.signer, ok = signer.(ssh.AlgorithmSigner); !ok {
		return nil, errors.New("no such key can sign")
	}
	return k, nil
}

// Public is the public key, as ssh sends it.
func (k *Key) Public() []byte { return k.signer.PublicKey().Marshal() }

// Auth is the authentication of a user for the service ssh-connection.
type Auth struct {
	Session   []byte
	User      string
	Algorithm string
	// HostKey is in the text for the method publickey-hostbound-v00@openssh.com; nil: the method is publickey.
	HostKey []byte
}

// Sign signs an authentication. The signature is as ssh sends it.
func (k *Key) Sign(a Auth) ([]byte, error) {
	if !slices.Contains(k.algorithms, a.Algorithm) {
		return nil, fmt.Errorf("the key does not sign with %.64q", a.Algorithm)
	}
	const userauthRequest = 50 // RFC 4252, section 6
	text := struct {
		Session         []byte
		Type            byte
		User            string
		Service, Method string
		Signed          bool
		Algorithm       string
		Key             []byte
	}{a.Session, userauthRequest, a.User, "ssh-connection", "publickey", true, a.Algorithm, k.Public()}
	var bound []byte
	if a.HostKey != nil {
		text.Method = "publickey-hostbound-v00@openssh.com"
		bound = ssh.Marshal(struct{ Key []byte }{a.HostKey})
	}
	signature, err := k.signer.SignWithAlgorithm(rand.Reader, append(ssh.Marshal(text), bound...), a.Algorithm)
	if err != nil {
		return nil, err
	}
	return ssh.Marshal(signature), nil
}

// Verify returns an error unless signature is that of a host's key over the identifier of a session with it. What else a host signs is
// longer than an identifier, which is a hash.
func Verify(hostKey, session, signature []byte) error {
	if !slices.Contains([]int{32, 48, 64}, len(session)) { // SHA-256, SHA-384, SHA-512
		return fmt.Errorf("an identifier of a session does not have %d bytes", len(session))
	}
	key, err := ssh.ParsePublicKey(hostKey)
	if err != nil {
		return err
	}
	var of ssh.Signature
	if err := ssh.Unmarshal(signature, &of); err != nil {
		return err
	}
	if len(of.Rest) > 0 || of.Format == ssh.KeyAlgoRSA {
		return fmt.Errorf("a host's signature is not in the form %.64q", of.Format)
	}
	return key.Verify(session, &of)
}

// Fingerprint is a public key as ssh shows it; what is no key has one, too.
func Fingerprint(key []byte) string {
	if parsed, err := ssh.ParsePublicKey(key); err == nil {
		return ssh.FingerprintSHA256(parsed)
	}
	return "no key"
}
