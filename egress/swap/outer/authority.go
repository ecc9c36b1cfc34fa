package outer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"sync"
	"time"
)

// authority certifies the names of one run.
type authority struct {
	names []string
	root  *x509.Certificate
	key   crypto.Signer

	mu     sync.Mutex // guards issued
	issued map[string]*tls.Certificate
}

const (
	validBefore = time.Hour // for a clock in the sandbox that is behind
	validYears  = 5         // longer than a run; the key ends with its process
)

var (
	everyIPv4 = net.IPNet{IP: net.IPv4zero.To4(), Mask: make(net.IPMask, net.IPv4len)}
	everyIPv6 = net.IPNet{IP: net.IPv6zero, Mask: make(net.IPMask, net.IPv6len)}
)

func newAuthority(names []string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("clove: secrets of one run")
	template.IsCA, template.MaxPathLenZero, template.KeyUsage = true, true, x509.KeyUsageCertSign
	template.PermittedDNSDomainsCritical, template.PermittedDNSDomains = true, names
	template.ExcludedIPRanges = []*net.IPNet{&everyIPv4, &everyIPv6}
	template.ExcludedEmailAddresses, template.ExcludedURIDomains = []string{""}, []string{""} // empty: each
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{names: names, root: root, key: key, issued: map[string]*tls.Certificate{}}, nil
}

// certificate is what all certificates of a run have.
func certificate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // it never fails
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-validBefore), NotAfter: now.AddDate(validYears, 0, 0),
		BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
}

// pem is the authority's certificate.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
}

// certify returns a certificate for one of the names.
func (a *authority) certify(name string) (*tls.Certificate, error) {
	if !slices.Contains(a.names, name) {
		return nil, fmt.Errorf("no certificate for %.80q", name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.issued[name]; c != nil {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate(name)
	template.DNSNames, template.KeyUsage = []string{name}, x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	a.issued[name] = &tls.Certificate{Certificate: [][]byte{der, a.root.Raw}, PrivateKey: key}
	return a.issued[name], nil
}
