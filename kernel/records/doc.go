// Package records is the service of the audit log: an agent reads records about a namespace that a
// grant covers, users those about their own runs, and root all. It reads files that package audit
// writes, and verifies nothing.
package records
