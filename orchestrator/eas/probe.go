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

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/probe"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/taskdir"
)

func probesDir(h taskdir.Home) string { return filepath.Join(h.State, "probes") }

var notInFileName = regexp.MustCompile(`[^a-z0-9._-]+`)

func resultFile(h taskdir.Home, model string, seed uint64) string {
	sum := sha256.Sum256([]byte(model))
	plain := strings.Trim(notInFileName.ReplaceAllString(strings.ToLower(filepath.Base(model)), "_"), "._")
	return filepath.Join(probesDir(h), fmt.Sprintf("%.40s-%x-%d.result.json", plain, sum[:4], seed))
}

// ProbeReport is the content of a probe's result file.
type ProbeReport struct {
	Result  probe.Result   `json:"result"`
	Row     *attention.Row `json:"row"` // nil: the run is not done
	At      time.Time      `json:"at"`
	Written string         `json:"written,omitempty"` // the overlay
}

// StoreResult returns the report of a probe and, once it is done, stores it for the proposals.
// s is what the table says of the model.
func StoreResult(h taskdir.Home, s attention.EAS, res probe.Result) (ProbeReport, error) {
	rep := ProbeReport{Result: res, At: time.Now().UTC()}
	if !res.Done {
		return rep, nil
	}
	row := res.Row(s, rep.At)
	rep.Row = &row
	encode := func() ([]byte, error) { return json.MarshalIndent(rep, "", "  ") }
	return rep, editFile(resultFile(h, res.Model, res.Seed), encode)
}

// Accept writes the report's row, if there is one, into the user's overlay.
func (rep *ProbeReport) Accept(h taskdir.Home) error {
	if rep.Row == nil {
		return nil
	}
	rep.Written = h.EASOverlay()
	return PutRow(rep.Written, *rep.Row)
}

// TextModel asks a model for texts, as an anamnesis.Model.
type TextModel struct {
	Model       model.Model
	Purpose     string
	ReplyTokens int // a reply may take; 0: no limit
}

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
