// Package bounded has the bounds of servers that read what an untrusted client sends: of open
// connections, and of bytes that are held at once.
package bounded
