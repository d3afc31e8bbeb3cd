//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

const (
	// hookReply is how long the agent waits at most. What takes longer goes on without it.
	hookReply = 1800 * time.Millisecond
	// hookWork is how long a hook may record.
	hookWork = 10 * time.Minute
	// maxHookLog is the size at which the log of errors begins anew.
	maxHookLog = 1 << 20
)

// hookCommand is what the wrapper in an agent's configuration runs. It never fails
// towards the agent: standard error is empty, and standard output empty or one reply.
func (a *app) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "hook AGENT",
		Short:  "Record an event of another agent, given on standard input",
		Hidden: true,
		Args:   cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			agents := []sessions.Agent{sessions.Claude, sessions.Codex}
			if len(args) == 0 || !slices.Contains(agents, sessions.Agent(args[0])) {
				return nil
			}
			a.hook(cmd.Context(), sessions.Agent(args[0]))
			return nil
		},
	}
}

func (a *app) hook(ctx context.Context, agent sessions.Agent) {
	svc, err := a.service()
	if err != nil {
		return // there is nowhere to say it; doctor finds it
	}
	// The wrapper waits for the end of standard output, not of this process.
	var once sync.Once
	answer := func(reply []byte) {
		once.Do(func() {
			if len(reply) > 0 {
				a.stdout.Write(reply)
			}
			if f, ok := a.stdout.(*os.File); ok {
				f.Close()
			}
		})
	}
	timer := time.AfterFunc(hookReply, func() { answer(nil) })
	defer timer.Stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookWork)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			hookError(svc, agent, fmt.Errorf("panic: %v", p))
		}
		answer(nil)
	}()
	if err := beside.Hook(ctx, svc, agent, a.stdin, answer); err != nil {
		hookError(svc, agent, err)
	}
}

// hookError says what went wrong in the log that doctor reads.
func hookError(svc *session.Service, agent sessions.Agent, err error) {
	path := beside.Log(svc.Home)
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxHookLog {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, openErr := os.OpenFile(path, flags, 0o600)
	if openErr != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s: %s\n", time.Now().UTC().Format(time.RFC3339), agent, strings.Join(strings.Fields(err.Error()), " "))
}
