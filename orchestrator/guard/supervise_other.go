//go:build !unix

package guard

import (
	"context"

	"anamnesis/opstream/op"
)

// Missing lists what this platform lacks, one sentence each.
func Missing() []string { return []string{"commands cannot be run on this platform"} }

// SuperviseMain does nothing here: there is no supervisor on this platform.
func SuperviseMain() {}

// EndLeftover does nothing here: no command was ever run.
func EndLeftover(op.ToolStarted) error { return nil }

// Run refuses with ErrUnsupported.
func Run(context.Context, Command) (Outcome, error) { return Outcome{}, ErrUnsupported }
