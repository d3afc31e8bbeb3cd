// Package assets holds the files of the repository root that the program
// carries in itself, and nothing else.
package assets

import _ "embed"

// EAS is the effective-attention-span table, eas.yaml, as it was built in.
// Callers must not change it.
//
//go:embed eas.yaml
var EAS []byte
