// Command clove-tool makes one call of a tool inside a sandbox, with the rights of whatever starts
// it there. It reads a tools.Order from its stdin and checks the arguments against their schema.
// Its stdout is the result, at most as long as the order says; its stderr says why there is none;
// its exit status is one of package tools' Exit constants.
//
// SIGTERM, SIGINT and SIGHUP end the call with the processes that it started.
package main
