package sshkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func keys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	return map[string]crypto.Signer{ssh.KeyAlgoED25519: ed, ssh.KeyAlgoECDSA256: ec, ssh.KeyAlgoRSASHA256: large, ssh.KeyAlgoRSASHA512: large}
}

func written(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "a comment")
	must(t, err)
	return pem.EncodeToMemory(block)
}

// Keys of each kind sign an authentication, and a host's signature over a session is verified. The controls are another session and
// SHA-1.
func TestKeysSign(t *testing.T) {
	t.Parallel()
	session := make([]byte, 32)
	for algorithm, private := range keys(t) {
		key, err := Read(written(t, private))
		must(t, err)
		text, err := key.Sign(Auth{Session: session, User: "git", Algorithm: algorithm, HostKey: []byte("host")})
		must(t, err)
		var signature ssh.Signature
		must(t, ssh.Unmarshal(text, &signature))
		public, err := ssh.ParsePublicKey(key.Public())
		must(t, err)
		signed := ssh.Marshal(struct {
			Session               []byte
			Kind                  byte
			User, Service, Method string
			Signed                bool
			Algorithm             string
			Key                   []byte
			Host                  string
		}{session, 50, "git", "ssh-connection", "publickey-hostbound-v00@openssh.com", true, algorithm, key.Public(), "host"})
		if err := public.Verify(signed, &signature); err != nil || signature.Format != algorithm {
			t.Errorf("%s: %v, %s", algorithm, err, signature.Format)
		}
		host, err := ssh.NewSignerFromKey(private)
		must(t, err)
		proof, err := host.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, session, algorithm)
		must(t, err)
		if err := Verify(key.Public(), session, ssh.Marshal(proof)); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		if Verify(key.Public(), slices.Concat(session[1:], []byte{1}), ssh.Marshal(proof)) == nil || Verify(key.Public(), session, append(ssh.Marshal(proof), 0)) == nil {
			t.Errorf("control: another session of %s is verified", algorithm)
		}
		if _, err := key.Sign(Auth{Session: session, User: "git", Algorithm: ssh.KeyAlgoRSA}); err == nil {
			t.Errorf("%s signs with SHA-1", algorithm)
		}
		if strings.HasPrefix(algorithm, "rsa") {
			old, err := host.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, session, ssh.KeyAlgoRSA)
			must(t, err)
			if Verify(key.Public(), session, ssh.Marshal(old)) == nil {
				t.Error("a host's signature with SHA-1 is verified")
			}
		}
	}
}

// What cannot sign is refused, without a part of it in the error.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	private := keys(t)[ssh.KeyAlgoED25519]
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("x"))
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	small := []byte("-----BEGIN RSA PRIVATE KEY-----\nMIICXA==\n-----END RSA PRIVATE KEY-----\n")
	for about, text := range map[string][]byte{
		"passphrase": pem.EncodeToMemory(locked), "private key": ssh.MarshalAuthorizedKey(signer.PublicKey()), "no private": []byte("ghp_abcdefgh"), "is no": small,
	} {
		if _, err := Read(text); err == nil || !strings.Contains(err.Error(), about) || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: %v", about, err)
		}
	}
}
