package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/internal/descriptor"
)

// Names in the directory of the key that signs statements. Both files are PEM, so that
// openssl reads them.
const (
	grantPrivate = "current"    // PKCS #8
	grantPublic  = "public.pem" // PKIX
)

// The types of PEM blocks (RFC 7468).
const (
	pemPrivate = "PRIVATE KEY"
	pemPublic  = "PUBLIC KEY"
)

// openGrantKey makes the directory and its key if they do not exist. It is no key of the
// audit log: a statement must not be able to pass for a checkpoint.
func openGrantKey(dir string) (key ed25519.PrivateKey, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	err = descriptor.Exclusively(dir, func() error {
		path := filepath.Join(dir, grantPrivate)
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			key, err = makeGrantKey(dir)
			return err
		}
		if err != nil {
			return err
		}
		if key, err = decodePrivate(text); err != nil {
			return fmt.Errorf("%s is not a key", path) // without the text, which is the key
		}
		return nil
	})
	return key, err
}

// makeGrantKey writes the private key last: it is never there without its public one.
func makeGrantKey(dir string) (ed25519.PrivateKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	privateText, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	publicText, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(filepath.Join(dir, grantPublic), 0o600, encode(pemPublic, publicText)); err != nil {
		return nil, err
	}
	return private, atomicfile.Write(filepath.Join(dir, grantPrivate), 0o600, encode(pemPrivate, privateText))
}

func encode(kind string, bytes []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
}

func decodePrivate(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errNoKey
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := any.(ed25519.PrivateKey); ok && err == nil {
		return key, nil
	}
	return nil, errNoKey
}

var errNoKey = errors.New("not an Ed25519 key in PEM form")

func decodePublic(text []byte) (ed25519.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block != nil {
		any, err := x509.ParsePKIXPublicKey(block.Bytes)
		if key, ok := any.(ed25519.PublicKey); ok && err == nil {
			return key, nil
		}
	}
	return nil, invalid("", "name the file keys/grant/public.pem of the directory that clove's --root names", "the key is %v", errNoKey)
}
