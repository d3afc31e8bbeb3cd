package eas

import (
	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/tokens"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// Tables are the EAS tables in effect in a directory. Without a home, those are the built-in
// table and the directory's.
type Tables struct {
	Builtin []byte
	Dir     string
	own     string         // file of the user's own rows; empty without a home
	trust   *consent.Trust // nil without a home
}

// InHome returns the tables with the user's own rows and approvals.
func (t Tables) InHome(h taskdir.Home) Tables {
	t.own, t.trust = h.EASOverlay(), consent.OpenTrust(h.Approvals())
	return t
}

// Load returns the table in effect: the built-in one, overlaid by the user's, overlaid by the
// directory's.
func (t Tables) Load() (*attention.Table, error) {
	return session.LoadEAS(t.Builtin, t.own, t.trust, t.Dir)
}

// OwnName returns the name of the user's file for output.
func (t Tables) OwnName() string {
	if t.own == "" {
		return "eas.yaml in $ANAMNESIS_HOME"
	}
	return t.own
}

// EncodingNote describes how a model's tokens are counted.
func EncodingNote(model, encoding string) string {
	if tokens.Exact(model) && tokens.EncodingFor(model) == encoding { // the model's own
		return encoding
	}
	return encoding + ", an estimate: the model's own tokenizer is not public or not built in"
}
