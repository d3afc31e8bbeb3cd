package guard

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deadlineMark names the file of a victim's deadline, which is an hour away.
const deadlineMark = "ANAMNESIS_TEST_DEADLINE"

// victimContext is the context of a victim's command.
func victimContext() context.Context {
	ctx := context.Background()
	path := os.Getenv(deadlineMark)
	if path == "" {
		return ctx
	}
	d, err := NewDeadline(path)
	if err == nil {
		err = d.Set(time.Hour)
	}
	if err != nil {
		panic(err)
	}
	return WithDeadline(ctx, d, func(context.Context) error { return nil })
}

// TestDeadlineWhileStopped: a command ends at the deadline although its program, which is stopped, cannot end it.
func TestDeadlineWhileStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deadline")
	t.Setenv(deadlineMark, path)
	line := long(t)
	cmd, _ := startVictim(t, "setsid -f $LONG", line)
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&Deadline{f}).Set(0); err != nil {
		t.Fatal(err)
	}
	await(t, "the command has ended", func() bool { return len(survivors(t, line)) == 0 })
}

// TestDeadline: a command runs while its deadline is moved on, and none runs after it.
func TestDeadline(t *testing.T) {
	d, err := NewDeadline(filepath.Join(t.TempDir(), "deadline"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	waited := 0
	ctx := WithDeadline(t.Context(), d, func(context.Context) error { waited++; return nil })
	begun := filepath.Join(t.TempDir(), "begun")
	o, err := Run(ctx, shellCommand("touch "+begun+"; sleep 1000000"))
	if _, err := os.Stat(begun); err == nil {
		t.Error("after the deadline a command began")
	}
	if err != nil || !strings.Contains(o.Note, "the bucket that keeps the task could not be reached in time") ||
		len(o.Alive) > 0 {
		t.Errorf("after the deadline: %+v, %v", o, err)
	}
	if err := d.Set(time.Hour); err != nil {
		t.Fatal(err)
	}
	if o, err := Run(ctx, shellCommand("sleep 0.6")); err != nil || o.Exit != 0 || o.Note != "" {
		t.Errorf("before the deadline: %+v, %v", o, err)
	}
	lost := errors.New("lost")
	if _, err := Run(WithDeadline(t.Context(), d, func(context.Context) error { return lost }), shellCommand("true")); !errors.Is(err, lost) || waited != 2 {
		t.Errorf("waited %d times, and where that fails: %v", waited, err)
	}
}
