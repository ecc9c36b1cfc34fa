// Package contract turns the API's table into data, and compares two of them.
//
// A Contract has what callers rely on: error codes, methods with tier, callers, parameters
// and results, and notifications. Current is the contract of this build. versions/N.json is
// that of contract version N (api.Version) as it was last accepted, and a part of the build,
// so that every clove can compare itself with it.
//
// A change is breaking if a program that follows the older contract can fail under the newer
// one: a method, a caller, a code or a field of an answer is gone, a type is another one, a
// parameter became required, a field of an answer may now be absent, or a method that was
// stable is experimental. A new element that is not in this list is an addition. Texts are no part of it.
//
// A test compares Current with the file of its version. An addition is accepted with
// -update. A breaking change of an experimental method needs -breaking too, and one of
// anything else a new api.Version, which starts a file of its own.
//
// It refuses to judge meaning: a method that does something else under the same name and
// fields is for reviews and other tests.
package contract
