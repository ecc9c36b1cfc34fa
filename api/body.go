package api

import (
	"bytes"
	"encoding/json"
)

// BodyMost bounds a value of JSON that a call carries: a message's body, a task, a result, the value of
// a key. It is in bytes, without blanks, and leaves room for the rest of a line.
const BodyMost = 48 << 10

// Compacted returns a value without blanks. It refuses what is no JSON, and what is larger than BodyMost.
// noun names it in the message: "a task".
func Compacted(noun string, value json.RawMessage) (json.RawMessage, error) {
	var compact bytes.Buffer
	if len(value) == 0 || json.Compact(&compact, value) != nil || compact.Len() > BodyMost {
		return nil, Failure(CodeTooLarge, "keep larger ones as blobs, with blob.open, and name those", "%s is JSON of 1 to %d bytes", noun, BodyMost)
	}
	return compact.Bytes(), nil
}

// Body is Compacted for a body that may be absent, or null, beside a blob: then there is none.
func Body(noun string, value json.RawMessage, blob *Blob) (json.RawMessage, error) {
	if blob != nil && (len(value) == 0 || string(value) == "null") {
		return nil, nil
	}
	return Compacted(noun, value)
}
