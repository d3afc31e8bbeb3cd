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
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return args
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return args
	}
	return strings.TrimSpace(b.String())
}
