package state

import (
	"fmt"
	"time"

	"anamnesis/opstream/op"
)

// Outage is a wait for a provider that fails, and why it fails.
type Outage struct {
	op.Wait
	Error string
}

// Text describes the wait at a time: until when, and why.
func (o *Outage) Text(now time.Time) string {
	return fmt.Sprintf("waits for the provider until %s: %s", Clock(o.Until, now), o.Error)
}

// Clock formats a moment in local time, with its date if it is not within half a day of now.
func Clock(t, now time.Time) string {
	if d := t.Sub(now).Abs(); d < 12*time.Hour {
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2006-01-02 15:04")
}
