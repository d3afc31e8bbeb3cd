package state

import (
	"fmt"
	"strings"
	"time"

	"anamnesis/opstream/op"
)

// minQuartered is the smallest limit of steps whose quarters are reported.
const minQuartered = 20

// QuarterNotice informs the model of an unattended task how much of its limits is used, once for each quarter;
// nil: no further quarter is used.
func QuarterNotice(s *State, lim Limits) *op.NoticeGiven {
	if lim.Present {
		return nil
	}
	most := 0
	var used []string
	add := func(amount, limit float64, text string) {
		if limit <= 0 || amount < limit/4 {
			return
		}
		most = max(most, min(int(4*amount/limit), 3))
		used = append(used, text)
	}
	if steps := s.Turn.Steps + lim.Others.Steps; lim.steps() >= minQuartered {
		add(float64(steps), float64(lim.steps()), fmt.Sprintf("%d of %d steps in this turn", steps, lim.steps()))
	}
	tokens := s.Spent().Tokens + lim.Others.Tokens
	add(float64(tokens), float64(lim.Tokens), fmt.Sprintf("%d of %d tokens", tokens, lim.Tokens))
	usd := s.Spent().USD + lim.Others.USD + lim.EarlierUSD
	add(usd, lim.USD, fmt.Sprintf("%s of %s", Dollars(usd), Dollars(lim.USD)))
	add(float64(lim.Worked), float64(lim.Time), fmt.Sprintf("%s of %s", lim.Worked.Round(time.Second), lim.Time))
	if most <= s.Turn.Quarter {
		return nil
	}
	text := "[limits] Used so far: " + strings.Join(used, ", ") + "."
	if most == 3 {
		text += " Finish what matters first, and leave the files in a state that works."
	}
	return &op.NoticeGiven{Text: text, Quarter: most}
}
