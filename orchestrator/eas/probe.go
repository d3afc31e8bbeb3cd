package eas

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/probe"
	"anamnesis/anamnesis/tokens"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// probesDir is where outcomes and results are kept.
func probesDir(h taskdir.Home) string { return filepath.Join(h.State, "probes") }

var notInFileName = regexp.MustCompile(`[^a-z0-9._-]+`)

// ProbeRecord returns the file of a model's recorded outcomes.
func ProbeRecord(h taskdir.Home, model string, seed uint64) string {
	return filepath.Join(probesDir(h), probeName(model, seed)+".jsonl")
}

// Families reads the names of kinds of questions.
func Families(names []string) (out []probe.Family, err error) {
	for _, name := range names {
		if !slices.Contains(probe.Families(), probe.Family(name)) {
			return nil, session.Usagef("eas probe: --families %q: the families are %v", name, probe.Families())
		}
		out = append(out, probe.Family(name))
	}
	return out, nil
}

// CheckProbe rejects numbers that no probe can have.
func CheckProbe(o probe.Options) error {
	for _, n := range []struct {
		flag         string
		value, least int
	}{
		{"longest", o.Longest, probe.BaseLength}, {"window", o.Window, 0}, {"reply-tokens", o.ReplyTokens, 1},
		{"max-calls", o.MaxCalls, 0}, {"max-tokens", o.MaxTokens, 0}, {"at-once", o.AtOnce, 1},
	} {
		if n.value < n.least {
			return session.Usagef("eas probe: --%s %d: want at least %d", n.flag, n.value, n.least)
		}
	}
	return nil
}

// Earlier says what becomes of an earlier record of a probe.
type Earlier bool

// The ways: the probe continues it, or begins anew.
const (
	Continue Earlier = false
	Remove   Earlier = true
)

// OpenProbe prepares a probe of a model: the token counter, and the record of outcomes, whose
// path it returns: file, or one in the state home. The caller closes o.Record.
func OpenProbe(h taskdir.Home, model string, row attention.EAS, o *probe.Options, file string, earlier Earlier) (path string, err error) {
	if o.Window == 0 {
		return "", session.Usagef("eas probe: the table does not know the window of %s: add --window", row.Model)
	}
	count, err := tokens.ForEncoding(row.Encoding)
	if err != nil {
		return "", err
	}
	o.Count = count.Count
	path = cmp.Or(file, ProbeRecord(h, model, o.Seed))
	if earlier == Remove {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("eas probe: --fresh: %w", err)
		}
	}
	o.Record, err = probe.OpenRecord(path, model, o)
	if errors.Is(err, probe.ErrOtherRun) {
		err = session.Usagef("eas probe: %v; --fresh starts over, --record names another file", err)
	}
	return path, err
}

// probeName returns the file name, without its ending, of a model's run.
func probeName(model string, seed uint64) string {
	sum := sha256.Sum256([]byte(model))
	plain := strings.Trim(notInFileName.ReplaceAllString(strings.ToLower(filepath.Base(model)), "_"), "._")
	return fmt.Sprintf("%.40s-%x-%d", plain, sum[:4], seed)
}

// ProbeReport is the content of a probe's result file.
type ProbeReport struct {
	Result   probe.Result   `json:"result"`
	Row      *attention.Row `json:"row"`      // nil: the run is not done
	Interval [2]float64     `json:"interval"` // Wilson, 95%, of the score at the longest length asked up to the EAS
	At       time.Time      `json:"at"`
	Record   string         `json:"record"`
	Written  string         `json:"written,omitempty"` // the overlay
}

// saveResult stores a finished result, the newest of a model and seed.
func saveResult(h taskdir.Home, rep ProbeReport) error {
	path := filepath.Join(probesDir(h), probeName(rep.Result.Model, rep.Result.Seed)+".result.json")
	return editFile(path, 0o700, 0o600, func() ([]byte, error) { return json.MarshalIndent(rep, "", "  ") })
}

// TextModel asks a model for texts, as an anamnesis.Model.
type TextModel struct {
	Model       model.Model
	Purpose     string
	ReplyTokens int // a reply may take; 0: no limit
}

// Complete implements anamnesis.Model.
func (t TextModel) Complete(ctx context.Context, system, text string) (consult.Completion, error) {
	reply, err := t.Model.Ask(ctx, model.Request{
		Purpose: t.Purpose, MaxTokens: t.ReplyTokens,
		Messages: []model.Message{{Role: model.RoleSystem, Text: system}, {Role: model.RoleUser, Text: text}},
	}, nil)
	if f := model.AsFault(err); f != nil && f.Kind == model.FaultOverflow {
		return consult.Completion{}, fmt.Errorf("%w: %w", probe.ErrTooLong, err)
	}
	c := consult.Completion{Text: reply.Text, Usage: reply.Usage}
	if err == nil && reply.Finish == "length" {
		return c, probe.ErrCut
	}
	return c, err
}
