package question

import (
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
)

// TestParse: what users type is an answer to a kind of question, or says what is.
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		about, text string
		want        op.Answer
		err         string
	}{
		{op.AboutCall, "yes", op.Answer{Allow: true}, ""},
		{op.AboutCall, " Y ", op.Answer{Allow: true}, ""},
		{op.AboutCall, "always", op.Answer{Allow: true, Always: true}, ""},
		{op.AboutCall, "no", op.Answer{}, ""},
		{op.AboutCall, "no use make", op.Answer{Text: "use make"}, ""},
		{op.AboutCall, "No, use make", op.Answer{Text: "use make"}, ""},
		{op.AboutCall, "N.", op.Answer{}, ""},
		{op.AboutCall, "name it foo", op.Answer{}, "it takes yes | always"},
		{op.AboutCall, "yes please", op.Answer{}, "it takes yes | always"},
		{op.AboutCall, "nothing", op.Answer{}, "it takes yes | always"},
		{op.AboutAnswer, "no", op.Answer{Text: "no"}, ""},
		{op.AboutStrategy, "try make", op.Answer{Text: "try make"}, ""},
		{op.AboutAnswer, " ", op.Answer{}, "empty"},
		{op.AboutLimit, "yes", op.Answer{Allow: true}, ""},
		{op.AboutLimit, "5000", op.Answer{Allow: true, Text: "5000"}, ""},
		{op.AboutLimit, "no", op.Answer{}, ""},
		{op.AboutLimit, "no more", op.Answer{}, "a new limit"},
		{op.AboutLimit, "-1", op.Answer{}, "a new limit"},
		{op.AboutLimit, "always", op.Answer{}, "a new limit"},
		{op.AboutProvider, "yes", op.Answer{Allow: true}, ""},
		{op.AboutProvider, "always", op.Answer{}, "ask it again"},
	} {
		got, err := Parse(&op.QuestionAsked{About: tt.about, Limit: op.LimitTokens}, tt.text)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %q: %+v, %v", tt.about, tt.text, got, err)
		}
	}
}

// TestChoices: a limit of time says that its value has a unit.
func TestChoices(t *testing.T) {
	if _, err := Parse(&op.QuestionAsked{About: op.AboutLimit, Limit: op.LimitTime}, "5"); err == nil ||
		!strings.Contains(err.Error(), "such as 2h") {
		t.Error(err)
	}
}

// TestRaised: a limit is raised by as much again, or to a value; one of time counts from now.
func TestRaised(t *testing.T) {
	given := op.Limits{Steps: 10, Tokens: 100, USD: 0.5, Time: time.Hour}
	for _, tt := range []struct {
		which op.Limit
		value string
		want  op.Limits
	}{
		{op.LimitSteps, "", op.Limits{Steps: 20, Tokens: 100, USD: 0.5, Time: time.Hour}},
		{op.LimitTokens, "150", op.Limits{Steps: 10, Tokens: 150, USD: 0.5, Time: time.Hour}},
		{op.LimitCost, "", op.Limits{Steps: 10, Tokens: 100, USD: 1, Time: time.Hour}},
		{op.LimitTime, "", op.Limits{Steps: 10, Tokens: 100, USD: 0.5, Time: 9 * time.Hour}},
		{op.LimitTime, "30m", op.Limits{Steps: 10, Tokens: 100, USD: 0.5, Time: 8*time.Hour + 30*time.Minute}},
	} {
		if got, err := Raised(given, tt.which, tt.value, 8*time.Hour); err != nil || got != tt.want {
			t.Errorf("%s %q: %+v, %v", tt.which, tt.value, got, err)
		}
	}
	for _, tt := range []struct {
		which op.Limit
		value string
	}{
		{op.LimitSteps, "0"}, {op.LimitTokens, "many"}, {op.LimitCost, "inf"}, {op.LimitCost, "NaN"},
		{op.LimitTime, "5"}, {"max-days", "3"},
	} {
		if got, err := Raised(given, tt.which, tt.value, 0); err == nil {
			t.Errorf("%s %q: %+v", tt.which, tt.value, got)
		}
	}
}
