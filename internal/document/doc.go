// Package document reads and describes YAML that people write: policies, manifests, the
// configuration of providers and of cloved.
//
// A document is read into a struct with json tags. Nothing that its writer believes to have
// an effect is ignored: an unknown key is refused with the nearest one that exists, a
// repeated key, an anchor and a second document are refused, too. An error is an agent.Error
// of KindInvalid that begins with line, column and place: "line 4, column 3: limits: there is no
// key "memroy"".
//
// Schema writes the JSON Schema of the same struct, for editors, so that what an editor
// accepts and what Decode accepts cannot differ. A field's tag doc is its description.
package document
