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

// Written is a row that was written, and the one that applies to its model now.
type Written struct {
	File     string         `json:"file"`
	InEffect attention.EAS  `json:"in_effect"`
	Row      attention.Row  `json:"row"`
	Shadowed bool           `json:"shadowed"` // another row applies
	Was      *attention.Row `json:"was"`
}

// Set writes a row into the user's file or, if project is set, into the directory's.
func (t Tables) Set(n NewRow, project bool) (w Written, err error) {
	table, err := t.Load()
	if err != nil {
		return w, err
	}
	if w.Row, err = n.Row(table); err != nil {
		return w, err
	}
	w.File, w.Was = t.own, table.Row(n.Model)
	switch {
	case project:
		w.File = session.EASProjectFile(t.Dir)
		err = PutProjectRow(t.Dir, t.trust, w.Row)
	case t.own == "":
		err = session.Usagef("eas set: neither ANAMNESIS_HOME nor HOME is set: set one, or write the project's table with --project")
	default:
		err = PutRow(t.own, w.Row)
	}
	if err != nil {
		return w, err
	}
	if table, err = t.Load(); err != nil {
		return w, err
	}
	w.InEffect = table.Lookup(n.Model)
	w.Shadowed = w.InEffect.Pattern != w.Row.Pattern || w.InEffect.Origin != w.File
	return w, nil
}

// EncodingNote describes how a model's tokens are counted.
func EncodingNote(model, encoding string) string {
	if tokens.Exact(model) && tokens.EncodingFor(model) == encoding { // the model's own
		return encoding
	}
	return encoding + ", an estimate: the model's own tokenizer is not public or not built in"
}
