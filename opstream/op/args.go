package op

import (
	"bytes"
	"encoding/json"
	"strings"
)

// CanonicalArgs writes a call's JSON arguments with sorted keys and no spare
// space, so that equal calls compare equal. What is not JSON stays as it is.
func CanonicalArgs(args string) string {
	dec := json.NewDecoder(strings.NewReader(args))
	// As float64, large numbers would be rounded, and different calls would compare equal.
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return args
	}
	data, err := PlainJSON(v)
	if err != nil {
		return args
	}
	return string(data)
}

// PlainJSON encodes a value as JSON in which <, > and & stand as they are, as models write them.
func PlainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
