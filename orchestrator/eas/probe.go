package eas

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/probe"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/taskdir"
)

// probesDir is where outcomes and results are kept.
func probesDir(h taskdir.Home) string { return filepath.Join(h.State, "probes") }

var notInFileName = regexp.MustCompile(`[^a-z0-9._-]+`)

// ProbeRecord is the file in which the outcomes of a model's run are recorded.
func ProbeRecord(h taskdir.Home, model string, seed uint64) string {
	return filepath.Join(probesDir(h), probeName(model, seed)+".jsonl")
}

// probeName is the file name, without its ending, of a model's run.
func probeName(model string, seed uint64) string {
	sum := sha256.Sum256([]byte(model))
	plain := strings.Trim(notInFileName.ReplaceAllString(strings.ToLower(filepath.Base(model)), "_"), "._")
	return fmt.Sprintf("%.40s-%x-%d", plain, sum[:4], seed)
}

// ProbeReport is what a probe measured, and what its result file holds.
type ProbeReport struct {
	Result   probe.Result   `json:"result"`
	Row      *attention.Row `json:"row"`      // nil: the run is not done
	Interval [2]float64     `json:"interval"` // Wilson, 95%, of the score at the longest length asked up to the EAS
	At       time.Time      `json:"at"`
	Record   string         `json:"record"`
	Written  string         `json:"written,omitempty"` // the overlay
}

// saveResult keeps a finished result, the newest of a model and seed.
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
func (t TextModel) Complete(ctx context.Context, system, text string) (anamnesis.Completion, error) {
	reply, err := t.Model.Ask(ctx, model.Request{
		Purpose: t.Purpose, MaxTokens: t.ReplyTokens,
		Messages: []model.Message{{Role: model.RoleSystem, Text: system}, {Role: model.RoleUser, Text: text}},
	}, nil)
	if f := model.AsFault(err); f != nil && f.Kind == model.FaultOverflow {
		return anamnesis.Completion{}, fmt.Errorf("%w: %w", probe.ErrTooLong, err)
	}
	c := anamnesis.Completion{Text: reply.Text, Usage: reply.Usage}
	if err == nil && reply.Finish == "length" {
		return c, probe.ErrCut
	}
	return c, err
}
