package grant

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// statementFormat is signed with the rest, so that nothing else that the key signs can be
// taken for a statement.
const statementFormat = "clove.run/grant/v1"

// statementMost bounds what VerifyStatement reads, in bytes: more than any grant needs.
const statementMost = 8 << 10

// Statement says that a grant stood in the store when it was signed. It is for people and
// for other programs, offline: whether the grant still stands, only the store knows, and
// clove accepts a statement nowhere as a right.
//
// It is two lines of text, each with a line feed at its end:
//
//  1. the canonical JSON of this struct (RFC 8785: members sorted, no spaces, no needless escapes)
//  2. the Ed25519 signature (RFC 8032) of the first line without its line feed, in base64 with padding
//
// With the public key in PEM form, openssl verifies it:
//
//	sed -n 1p FILE | tr -d '\n' >line; sed -n 2p FILE | base64 -d >signature
//	openssl pkeyutl -verify -pubin -inkey KEY.pem -rawin -in line -sigfile signature
//
// The fields stand in the order of their JSON names, which makes encoding/json canonical.
type Statement struct {
	Created time.Time `json:"created"` // times are in UTC (RFC 3339)
	Expires time.Time `json:"expires,omitzero"`
	Format  string    `json:"format"` // clove.run/grant/v1
	Giver   string    `json:"giver"`
	Holder  string    `json:"holder"`
	ID      string    `json:"id"`  // the grant's
	Key     string    `json:"key"` // KeyID of the public key
	Parent  string    `json:"parent,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Scope   string    `json:"scope"`     // canonical text, see Parse
	Signed  time.Time `json:"signed"`    // in whole seconds
	Uses    int64     `json:"uses_left"` // when it was signed; -1: any number
}

// KeyID is the SHA-256 of the key's 32 bytes, in lower-case hexadecimal digits.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:])
}

// Sign returns the statement that g stands at now. The error is of KindInvalid if the row
// is damaged or the key is none.
func Sign(key ed25519.PrivateKey, g Grant, now time.Time) ([]byte, error) {
	scope, err := g.Scope()
	if err != nil {
		return nil, err
	}
	err = Request{ID: g.ID, Holder: g.Holder, Giver: g.Giver, Reason: g.Reason}.checkWords()
	if err == nil && !printable(g.Parent) {
		err = invalid("the id of the grant's parent cannot be printed", "")
	}
	if err != nil {
		return nil, err
	}
	if len(key) != ed25519.PrivateKeySize {
		return nil, invalid(fmt.Sprintf("%d bytes are no private key of Ed25519", len(key)), "")
	}
	line, err := Statement{Created: g.Created.UTC(), Expires: g.Expires.UTC(), Format: statementFormat, Giver: g.Giver, Holder: g.Holder, ID: g.ID,
		Key: KeyID(key.Public().(ed25519.PublicKey)), Parent: g.Parent, Reason: g.Reason, Scope: scope.String(), Signed: now.UTC().Truncate(time.Second), Uses: g.UsesLeft}.encode()
	if err != nil {
		return nil, err
	}
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key, line))
	return fmt.Appendf(line, "\n%s\n", signature), nil
}

// encode returns the first line, without its line feed. None of the escapes in which
// encoding/json differs from RFC 8785 can occur: checkText and checkWords exclude their
// characters.
func (s Statement) encode() ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(s)
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), err
}

// VerifyStatement returns what key signed, or an error of KindInvalid. The signature is
// checked before anything is decoded, and only the one form that Sign writes is accepted.
func VerifyStatement(key ed25519.PublicKey, statement []byte) (Statement, error) {
	if len(key) != ed25519.PublicKeySize {
		return Statement{}, invalid(fmt.Sprintf("%d bytes are no public key of Ed25519", len(key)), "")
	}
	line, signature, err := splitStatement(statement)
	if err != nil {
		return Statement{}, err
	}
	if !ed25519.Verify(key, line, signature) {
		return Statement{}, invalid("the signature is not this key's, or the statement was changed", "key "+KeyID(key)+" was asked")
	}
	var s Statement
	if err := json.Unmarshal(line, &s); err != nil {
		return Statement{}, invalid("the key has signed something else than a statement on a grant", "")
	}
	again, err := s.encode()
	if err != nil || !bytes.Equal(again, line) || s.Format != statementFormat || s.Key != KeyID(key) {
		return Statement{}, invalid("the key has signed a statement of another form", "this clove reads "+statementFormat)
	}
	return s, nil
}

// splitStatement returns the two lines. The base64 of a signature has one spelling, so that
// a statement has one too.
func splitStatement(statement []byte) (line, signature []byte, err error) {
	notTwo := invalid("a statement is two lines, JSON and a signature in base64", "clove grant export writes one")
	if len(statement) > statementMost {
		return nil, nil, notTwo
	}
	line, rest, _ := bytes.Cut(statement, []byte("\n"))
	text, ended := bytes.CutSuffix(rest, []byte("\n"))
	// DecodeString skips line feeds.
	if !ended || bytes.ContainsAny(text, "\r\n") {
		return nil, nil, notTwo
	}
	signature, err = base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(signature) != ed25519.SignatureSize {
		return nil, nil, notTwo
	}
	return line, signature, nil
}
