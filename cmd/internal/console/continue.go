//go:build unix

package console

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/beside/continuation"
)

// Continue copies another agent's session up to a step and replaces this process by the agent
// in the copy, with prompt as its first message. Without a terminal it prints the commands.
func (c *Console) Continue(ctx context.Context, at continuation.Point, prompt string) error {
	copies, opens := at.Commands(prompt)
	program, err := exec.LookPath(copies[0])
	if !c.Interactive() || err != nil {
		_, err := fmt.Fprintf(c.Out, "cd %s && %s && %s\n", shell.Quote(at.Dir), shellLine(copies), shellLine(opens))
		return err
	}
	if err := os.Chdir(at.Dir); err != nil {
		return err
	}
	first := exec.CommandContext(ctx, program, copies[1:]...)
	first.Stdout, first.Stderr = c.Out, c.Err
	if err := first.Run(); err != nil {
		return fmt.Errorf("copy the session: %w; the jump is done, and the session itself is unchanged", err)
	}
	return syscall.Exec(program, opens, os.Environ())
}

func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shell.Quote(w)
	}
	return strings.Join(quoted, " ")
}
