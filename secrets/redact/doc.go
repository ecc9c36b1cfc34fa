// Package redact takes secrets out of what servers answer, so that an agent which has its words repeated to it
// learns nothing: neither a value, nor whether a guess begins as one does.
//
//	Secret    finds values, however a server writes them
//	Redactor  takes them out of a text that comes in parts
package redact
