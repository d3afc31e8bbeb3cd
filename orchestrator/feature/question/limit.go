package question

import (
	"fmt"
	"strconv"
	"time"

	"anamnesis/opstream/op"
)

// Raised returns limits of which one is raised: to a value, or without one by as much again. A limit of time
// counts from the time used.
func Raised(l op.Limits, which op.Limit, value string, used time.Duration) (op.Limits, error) {
	var err error
	switch which {
	case op.LimitSteps:
		l.Steps, err = raised(l.Steps, value, strconv.Atoi)
	case op.LimitTokens:
		l.Tokens, err = raised(l.Tokens, value, strconv.Atoi)
	case op.LimitCost:
		l.USD, err = raised(l.USD, value, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case op.LimitTime:
		more := l.Time
		if value != "" {
			more, err = raised(0, value, time.ParseDuration)
		}
		l.Time = used + more
	default:
		err = fmt.Errorf("there is no limit %q", which)
	}
	return l, err
}

func raised[N int | float64 | time.Duration](now N, value string, parse func(string) (N, error)) (N, error) {
	if value == "" {
		return now + now, nil
	}
	n, err := parse(value)
	if err == nil && (!(n > 0) || n-n != 0) { // an infinite cost is no number of JSON
		err = fmt.Errorf("%q: want a value above zero", value)
	}
	return n, err
}
