//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"anamnesis/cmd/internal/exit"
)

// TestExitSaysInterruptOnce: a verb that Ctrl-C ended says that once.
func TestExitSaysInterruptOnce(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{context.Canceled, "anamnesis: interrupted\n"},
		{fmt.Errorf("save the world: %w", context.Canceled), "anamnesis: interrupted: save the world\n"},
		{fmt.Errorf("run command: %w", fmt.Errorf("%w: %w", context.Canceled, errors.New("interrupt signal received"))), "anamnesis: interrupted: run command: interrupt signal received\n"},
	} {
		var told bytes.Buffer
		a := &app{stderr: &told, getenv: func(string) string { return "" }}
		if code := a.exit(tt.err); code != exit.Interrupted || told.String() != tt.want {
			t.Errorf("%v: exit %d, %q; want %q", tt.err, code, told.String(), tt.want)
		}
	}
}
