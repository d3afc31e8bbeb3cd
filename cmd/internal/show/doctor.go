//go:build unix

package show

import (
	"anamnesis/opstream"
	"anamnesis/orchestrator/inspect"
)

func (o *Printer) Machine(d inspect.Machine) {
	o.Printf("sandbox: %s\n", d.Sandbox)
	for _, m := range d.Missing {
		o.Printf("sandbox: missing: %s\n", m)
	}
}

func (o *Printer) Diagnosis(d inspect.Diagnosis) {
	if d.NotExamined != "" {
		o.Printf("%s: not examined: %s\n", d.Task, OneLine(d.NotExamined))
		return
	}
	for _, f := range d.Findings {
		o.Printf("%s: %s\n", d.Task, OneLine(f.String()))
	}
	if d.Omitted > 0 {
		o.Printf("%s: and %d more findings\n", d.Task, d.Omitted)
	}
	state := "whole"
	switch {
	case d.Has(opstream.SeverityCorrupt):
		state = "corrupt"
	case d.Has(opstream.SeverityTorn):
		state = "torn at its end"
	}
	o.Printf("%s: %s: ops %d, blobs %d, commits %d\n", d.Task, state, d.Ops, d.Blobs, d.Commits)
}

// Salvaged says what was copied of a damaged task.
func (o *Printer) Salvaged(id, to string, got opstream.Salvaged) {
	o.Printf("copied ops 1-%d (%d bytes, blobs %d) of %s to %s\n", got.Records, got.Bytes, got.Blobs, id, to)
	if got.Why != "" {
		o.Printf("stopped at: %s\n", OneLine(got.Why))
	}
}
