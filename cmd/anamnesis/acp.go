//go:build unix

package main

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/acp"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/install"
	"anamnesis/cmd/internal/recorder"
	"anamnesis/orchestrator/session"
)

// acpCommand is this program's agent in an editor, and the proxy between an editor and another
// agent.
func (a *app) acpCommand() *cobra.Command {
	var r session.Request
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Serve an editor, or record another agent that an editor runs",
		Long: `Serve an editor that speaks the Agent Client Protocol on standard input and output. Each session
is a task: it begins with its first prompt and can be listed, loaded and resumed. Its modes are
the approval modes. The editor answers approvals. MCP servers that the editor names are used in
addition to the configured ones. /jump STEP, /timeline and /cards TEXT are answered without the
model.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return acp.Serve(cmd.Context(), acp.Options{Version: version, Open: func(dir string) (*session.Service,
				session.Request, session.Settings, error) {
				svc, set, err := a.configured(dir)
				if err != nil {
					return nil, session.Request{}, session.Settings{}, err
				}
				begun, resumed := r, r.Settings
				set.Request(&begun)
				set.Resumed(&resumed)
				return svc, begun, resumed, nil
			}}, a.stdin, a.stdout, a.stderr)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&r.Model, "model", "", "model name, or script:FILE for a recording")
	fl.StringVar(&r.BaseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.StringVar(&r.Approval, "approval", "", "ask, edits, auto or deny (default: ask)")
	fl.StringVar(&r.Sandbox, "sandbox", "", "what commands may change: world (the default), read-only or off")
	fl.StringVar(&r.Agent, "agent", "", "name of an agent, or file of its spec, for new sessions")
	cmd.AddCommand(a.acpProxyCommand())
	return cmd
}

func (a *app) acpProxyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "proxy -- COMMAND…",
		Short: "Record an agent's sessions in an editor, and offer them jumps and cards",
		Long: `Start COMMAND, an agent that speaks the Agent Client Protocol on standard input and output, and
forward messages between it and the editor. Configure this command in the editor in place of the
agent. Each call becomes an operation and each step a snapshot. Cards are added to prompts, and the
MCP server to sessions whose agent does not have it.
/jump STEP, /timeline and /cards TEXT are answered here. Unknown messages are forwarded byte for
byte. A session that the agent's own hooks record is only forwarded.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var p *install.Places
			svc, err := a.service()
			if err == nil {
				p, err = install.Here(svc.Home, a.getenv)
			}
			if err != nil { // the agent is to run all the same
				fmt.Fprintf(a.stderr, "anamnesis: acp proxy: forwards only and records nothing: %v\n", err)
				svc = nil
			}
			err = acp.Run(cmd.Context(), svc, recorder.Recorders(svc), p, args, a.stdin, a.stdout, a.stderr)
			if ended := new(exec.ExitError); errors.As(err, &ended) {
				return exit.With(max(ended.ExitCode(), 1), fmt.Errorf("acp proxy: %s ended: %w", args[0], err))
			}
			return err
		},
	}
}
