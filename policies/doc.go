// Package policies holds policy documents: their form, the built-in levels, and how one
// document extends another. A policy is a value; this package does not touch the operating
// system.
//
// A document (Document) is YAML that internal/document reads. It says what the defaults of a
// run are; its values are texts in the notation of the command line, so that a flag and a key
// mean the same. Package policies/settings has a row for each key, from which the form of
// documents is made; package policies/resolve turns a document into an agent.Spec.
//
// # Extending
//
// Each document extends another one, at last the level standard, whose values are Standard's.
// A document takes over the settings that it does not name. A value replaces the one that it extends, a
// list replaces the list; but deny, capabilities.drop and the keys of a map are added to
// those that are there.
//
// A document may be narrower than what it extends as it likes. Where it is wider, widen must
// name the place with a reason: so no document widens by mistake, and show prints why.
//
// # Levels
//
// The five built-in levels are documents too, embedded here. Levels lists them from the widest
// to the narrowest.
package policies
