// Package settings is the table of what a run can be given: one row for each setting.
//
// # Theory of operation
//
// A row (Setting) says all that clove knows of a setting: its flag and its key in documents,
// the text that help and schema have, how a text is read into an agent.Spec, how a spec's
// value is written back, where one spec allows more than another, what a learned policy says,
// and what stands in for it in a cluster. Everything else is a loop over rows:
//
//	flags of clove run       cmd/clove               Flag, Short, On, Group, Usage, Default
//	keys of documents        policies                Key, Form, Doc, Enum
//	document over document   Values.Extend           Extends, Drops
//	flags over a document    Values.Ask              Flags, Drops
//	texts to a spec          Reader, Section         Read, in the order of a Section's rows
//	where more is allowed    Wider                   Wider
//	what a run was given     Given                   Write
//	limits from peaks        policies/learn          Learn
//	clove update             cmd/clove               Live
//	clove render             cmd/clove               Pod
//
// Between them go Values: the texts of settings by their names, in the notation of the command
// line. A setting that is absent has the value of the standard level.
//
// A Section is the rows that are read together, with a check of what they say to one another.
// A mistake is one agent.Error with a hint, which names the flag.
//
// To add a setting, add a row here, a field to agent.Spec, and what package runtime does with
// it. Tests ask for a sample of its text.
//
// # What it does not do
//
// It knows neither a command line nor YAML, finds no policy, and decides nothing about the
// program that runs: policies/resolve does. Rows look at files of the host and change nothing.
package settings
