package model

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// TestFaultSaysCauseOnce: an ended context is the kind of the fault, and its text
// is not repeated; a cause that says more stays.
func TestFaultSaysCauseOnce(t *testing.T) {
	over := errors.New("the time limit of --max-time is reached")
	for _, tt := range []struct {
		fault Fault
		want  string
	}{
		{Fault{Kind: FaultCanceled, Err: context.Canceled}, "model: canceled"},
		{Fault{Kind: FaultCanceled, Err: context.Canceled, Tries: 2}, "model: canceled (after 2 tries)"},
		{Fault{Kind: FaultCanceled, Err: fmt.Errorf("%w: %w", context.Canceled, errors.New("interrupt signal received"))}, "model: canceled: interrupt signal received"},
		{Fault{Kind: FaultCanceled, Err: fmt.Errorf("%w: %w", context.DeadlineExceeded, over)}, "model: canceled: " + over.Error()},
		{Fault{Kind: FaultCanceled, Err: context.DeadlineExceeded}, "model: canceled: context deadline exceeded"},
		{Fault{Kind: FaultCanceled, Err: fmt.Errorf("wait for the server: %w", context.Canceled)}, "model: canceled: wait for the server"},
		{Fault{Kind: FaultTimeout, Err: context.DeadlineExceeded}, "model: timeout"},
		{Fault{Kind: FaultTimeout, Err: fmt.Errorf("dial tcp: %w", context.DeadlineExceeded)}, "model: timeout: dial tcp"},
		{Fault{Kind: FaultTimeout, Err: errors.New("no reply within 5s")}, "model: timeout: no reply within 5s"},
		{Fault{Kind: FaultNetwork, Err: errors.New("connection refused")}, "model: network: connection refused"},
	} {
		if got := tt.fault.Error(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.fault, got, tt.want)
		}
	}
}
