// Package resolve turns what was asked for into an agent.Spec.
//
// A Request holds texts in the notation of clove's command line, which manifests and
// other edges share: one reader for each value, and the same error for the same mistake
// everywhere. Spec lays a Request over the standard level with the steps of one table and
// returns a complete, valid spec. ImageSpec does the same for a root that is an image, of
// which this host knows nothing; Network builds the network part alone.
//
// An error is an agent.Error with one sentence and a hint. It names a field as the
// command line does (--memory), or says "script" or "interpreter".
//
// The package looks at files and changes nothing. It knows no command line: how a flag
// is spelled, repeated or left empty is the caller's concern. Package
// runtime defines the limits, and package policies the defaults.
package resolve
