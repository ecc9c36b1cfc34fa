package link

import (
	"crypto/tls"
	"errors"
	"net"
	"reflect"
)

// Alerts with which a client refuses a server's certificate, RFC 8446, section 6.2.
const (
	alertBadCertificate     = 42
	alertCertificateUnknown = 46
	alertUnknownAuthority   = 48
)

// Alert is the TLS alert with which the other side has ended a connection; 0: it has ended otherwise.
func Alert(err error) tls.AlertError {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0
	}
	// crypto/tls has a type of its own for what came from the other side, and does not export it.
	if number := reflect.ValueOf(op.Err); number.Kind() == reflect.Uint8 {
		return tls.AlertError(number.Uint())
	}
	return 0
}

// RefusesCertificate reports whether a client has refused the certificate that it was shown.
func RefusesCertificate(alert tls.AlertError) bool {
	return alert == alertBadCertificate || alert == alertCertificateUnknown || alert == alertUnknownAuthority
}
