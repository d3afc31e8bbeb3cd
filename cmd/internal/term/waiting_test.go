package term

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// TestWaiting: a wait for the provider is told when it begins and each time half of it is over; the reason
// of a further one only if it is another.
func TestWaiting(t *testing.T) {
	var out bytes.Buffer
	p := NewText(nil, &out, 200, "", NoOutputs)
	now := time.Now()
	o := state.Outage{Wait: op.Wait{Until: now.Add(time.Minute), End: now.Add(time.Hour), Tries: 1}, Error: "busy"}
	for left := time.Minute; left > 0; left -= time.Second {
		p.Waiting(o, left)
	}
	o.Tries, o.Until = 2, o.Until.Add(time.Minute)
	p.Waiting(o, time.Minute)
	got := regexp.MustCompile(`\d\d:\d\d:\d\d`).ReplaceAllString(strings.TrimSpace(out.String()), "T")
	want := `! the provider fails: asking again at T, in 1m0s, giving up at T: busy
  asking again in 30s
  asking again in 15s
  asking again in 7s
  asking again in 3s
  asking again in 1s
! the provider fails: asking again at T, in 1m0s, giving up at T: the same reason`
	if got != want {
		t.Errorf("told\n%s", got)
	}
}
