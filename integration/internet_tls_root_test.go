//go:build root

package integration

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"net"
	"sync"
	"time"
)

// authority signs certificates for every name of the test network.
type authority struct {
	key         *ecdsa.PrivateKey // of the authority and of all certificates that it signs
	certificate *x509.Certificate
	pem         []byte
}

// trust makes the one certificate authority of this test process.
var trust = sync.OnceValue(func() *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the tests of clove"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &authority{key, certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
})

// sign makes the certificate for the name in a ClientHello.
func (a *authority) sign(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	leaf := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(12 * time.Hour)}
	if hello.ServerName != "" {
		leaf.DNSNames = []string{hello.ServerName}
	} else if local, ok := hello.Conn.LocalAddr().(*net.TCPAddr); ok {
		leaf.IPAddresses = []net.IP{local.IP}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.certificate, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}, nil
}

func serverTLS() *tls.Config {
	config, private := encryptedHello()
	return &tls.Config{GetCertificate: trust().sign, NextProtos: []string{"http/1.1"},
		EncryptedClientHelloKeys: []tls.EncryptedClientHelloKey{{Config: config, PrivateKey: private, SendAsRetry: true}}}
}

// outerName is the public name of an encrypted ClientHello.
const outerName = "api.example.com"

// encryptedHello makes the one ECHConfig of the test network, RFC 9849 section 4, and its key.
var encryptedHello = sync.OnceValues(func() (config, private []byte) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	const kem, kdf, aead = 0x0020, 0x0001, 0x0001 // DHKEM(X25519), HKDF-SHA256, AES-128-GCM
	contents := []byte{7}                         // the configuration's number
	contents = binary.BigEndian.AppendUint16(contents, kem)
	contents = append(binary.BigEndian.AppendUint16(contents, 32), key.PublicKey().Bytes()...)
	contents = binary.BigEndian.AppendUint16(contents, 4)
	contents = binary.BigEndian.AppendUint16(contents, kdf)
	contents = binary.BigEndian.AppendUint16(contents, aead)
	contents = append(contents, 64, byte(len(outerName)))
	contents = append(contents, outerName...)
	contents = append(contents, 0, 0) // no extensions
	config = binary.BigEndian.AppendUint16(nil, 0xfe0d)
	config = append(binary.BigEndian.AppendUint16(config, uint16(len(contents))), contents...)
	return config, key.Bytes()
})

// encryptedHelloList is what a client gets, by DNS or otherwise.
func encryptedHelloList() []byte {
	config, _ := encryptedHello()
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(config))), config...)
}
