package note

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/quote"
)

// Limits of a model's reply. Items beyond them are cut off and counted.
const (
	MaxReplyBytes     = 256 << 10
	maxReplyItems     = 40  // of one list
	MaxStatementRunes = 400 // of one text
	maxWhyRunes       = 300
	maxTopicRunes     = 120
	MaxBulletRunes    = 600
	MaxCardBullets    = 8  // of one kind
	maxCitedOps       = 64 // of one statement
)

// Reply is a decoded answer, not yet checked against the span.
type Reply struct {
	Notes Notes
	Cards []Card
}

// replyJSON is the form that the schema asks for. Models write numbers as texts, and a text in place of a
// list of one, so the fields accept either. The outer object must be as asked.
type replyJSON struct {
	Causes    *[]statementJSON `json:"failure_causes"`
	Falsified *[]falsifiedJSON `json:"falsified"`
	Findings  *[]statementJSON `json:"findings"`
	Verified  *[]statementJSON `json:"verified"`
	Untried   *[]statementJSON `json:"untried"`
	Advice    *[]statementJSON `json:"advice"`
	Cards     *[]cardJSON      `json:"cards"`
}

type statementJSON struct {
	Text textJSON `json:"text"`
	Ops  opsJSON  `json:"ops"`
}

// UnmarshalJSON accepts a text as a statement without operations.
func (s *statementJSON) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &s.Text)
	}
	type plain statementJSON
	return json.Unmarshal(data, (*plain)(s))
}

type falsifiedJSON struct {
	Action     textJSON `json:"action"`
	State      textJSON `json:"state"`
	Error      textJSON `json:"error"`
	Why        textJSON `json:"why"`
	Confidence textJSON `json:"confidence"`
	Ops        opsJSON  `json:"ops"`
}

type cardJSON struct {
	Topic      textJSON `json:"topic"`
	Issue      listJSON `json:"issue"`
	Solution   listJSON `json:"solution"`
	Constraint listJSON `json:"constraint"`
	WrongIf    textJSON `json:"wrong_if"`
	Ops        opsJSON  `json:"ops"`
}

// textJSON is a text. It accepts a number or a boolean as well.
type textJSON string

// UnmarshalJSON implements json.Unmarshaler.
func (t *textJSON) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(t))
	case '{', '[':
		return errors.New("a text was expected, not an object or a list")
	case 'n':
		return nil
	}
	*t = textJSON(data)
	return nil
}

type listJSON []textJSON

// UnmarshalJSON implements json.Unmarshaler.
func (l *listJSON) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, (*[]textJSON)(l))
	}
	var one textJSON
	if err := json.Unmarshal(data, &one); err != nil || one == "" {
		return err
	}
	*l = listJSON{one}
	return nil
}

// opsJSON is a list of operation numbers. It accepts 12, "12", "op 12" and "12-14", of which it keeps the
// ends. An entry that is no number becomes 0, which grounding rejects.
type opsJSON []uint64

// UnmarshalJSON implements json.Unmarshaler.
func (o *opsJSON) UnmarshalJSON(data []byte) error {
	var items listJSON
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	for _, item := range items {
		for part := range strings.SplitSeq(string(item), "-") {
			part = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(part), "ops"), "op"))
			*o = append(*o, opNumber(part))
		}
	}
	return nil
}

func opNumber(s string) uint64 {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	// A float64 does not hold every whole number above 2^53, so the operation meant could be another one.
	if err != nil || f != math.Trunc(f) || f < 0 || f > 1<<53 {
		return 0
	}
	return uint64(f)
}

// Decode parses a model's reply. The error says what is wrong in words for the model, which is asked for a repair.
func Decode(text string) (Reply, error) {
	var j replyJSON
	err := consult.Object(text, MaxReplyBytes, &j)
	if err == nil && !j.any() {
		err = errors.New("the JSON object has none of the schema's fields")
	}
	if err != nil {
		return Reply{}, err
	}
	return j.reply(), nil
}

// any reports whether the object has a field of the outer object. Of a broken reply, an inner object may
// be valid JSON by itself.
func (j *replyJSON) any() bool {
	return j.Causes != nil || j.Falsified != nil || j.Findings != nil || j.Verified != nil ||
		j.Untried != nil || j.Advice != nil || j.Cards != nil
}

func (j *replyJSON) reply() Reply {
	r := Reply{}
	r.Notes = Notes{
		Causes: r.statements(j.Causes), Findings: r.statements(j.Findings), Verified: r.statements(j.Verified),
		Untried: r.statements(j.Untried), Advice: r.statements(j.Advice),
	}
	for _, f := range limited(j.Falsified) {
		r.Notes.Falsified = append(r.Notes.Falsified, Falsified{
			Action:     quote.Shorten(string(f.Action), MaxActionRunes),
			State:      quote.Shorten(string(f.State), MaxStateRunes),
			Error:      quote.Clip(quote.Squash(string(f.Error)), MaxErrorRunes),
			Why:        quote.Shorten(string(f.Why), maxWhyRunes),
			Confidence: confidence(string(f.Confidence)),
			Ops:        r.ops(f.Ops),
		})
	}
	for _, c := range limited(j.Cards) {
		r.Cards = append(r.Cards, Card{
			Topic:      quote.Shorten(string(c.Topic), maxTopicRunes),
			Issue:      r.bullets(c.Issue),
			Solution:   r.bullets(c.Solution),
			Constraint: r.bullets(c.Constraint),
			WrongIf:    quote.Shorten(string(c.WrongIf), maxWhyRunes),
			Ops:        r.ops(c.Ops),
		})
	}
	return r
}

// limited returns the first items of a list.
func limited[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	return (*p)[:min(len(*p), maxReplyItems)]
}

func (r *Reply) statements(list *[]statementJSON) []Statement {
	var out []Statement
	for _, s := range limited(list) {
		if text := quote.Shorten(string(s.Text), MaxStatementRunes); text != "" {
			out = append(out, Statement{Text: text, Ops: r.ops(s.Ops)})
		}
	}
	return out
}

func (r *Reply) bullets(list listJSON) []string {
	var out []string
	for _, s := range list[:min(len(list), MaxCardBullets)] {
		if text := quote.Shorten(string(s), MaxBulletRunes); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// ops sorts the cited operations and removes what occurs twice.
func (r *Reply) ops(list opsJSON) []uint64 {
	out := SortedOps(list)
	return out[:min(len(out), maxCitedOps)]
}

func confidence(s string) Confidence {
	switch c := Confidence(strings.ToLower(strings.TrimSpace(s))); c {
	case ConfidenceHigh, ConfidenceMedium, ConfidenceLow:
		return c
	}
	switch f, _ := strconv.ParseFloat(strings.TrimSpace(s), 64); {
	case f >= 0.8:
		return ConfidenceHigh
	case f >= 0.4:
		return ConfidenceMedium
	}
	return ConfidenceLow
}
