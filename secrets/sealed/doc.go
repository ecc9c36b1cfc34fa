// Package sealed encrypts the values of secrets, with age (filippo.io/age), for the store. The key is no part of the state directory: a
// copy of that gives nothing.
//
// The key is a credential of the service's (systemd.exec(5), LoadCredentialEncrypted=), or else a file that root alone may read,
// which is made when the first secret is set.
package sealed
