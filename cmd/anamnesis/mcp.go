//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/mcpserver"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/mcp"
)

// mcpCommand is the family of verbs over MCP servers.
func (a *app) mcpCommand() *cobra.Command {
	var dir, sandbox string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Add, list, test and approve MCP servers",
		Long: `MCP servers add tools to the agent. Your own are in mcp.json of the program's configuration, a
project's in .mcp.json of its directory. A project's server starts only after you approved its
current content, and runs in a sandbox with what you granted.`,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", ".", "directory of the project")
	cmd.PersistentFlags().StringVar(&sandbox, "sandbox", "",
		"sandbox in which test and approve run a project's server: world (default) or off")
	cmd.AddCommand(a.mcpAddCommand(), a.mcpListCommand(&dir),
		a.mcpRemoveCommand("remove", "Remove a server from your own configuration", &dir),
		a.mcpLoginCommand("login", "Log in at a server with an address, in your browser", &dir),
		a.mcpLoginCommand("logout", "Remove the stored login of a server", &dir),
		a.mcpTestCommand(&dir, &sandbox), a.mcpApproveCommand(&dir, &sandbox),
		a.mcpRemoveCommand("revoke", "Withdraw the approval of a project's server", &dir), a.mcpServeCommand(&dir))
	return cmd
}

func (a *app) mcpLoginCommand(verb, short string, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: a.withServers(dir, func(cmd *cobra.Command, args []string, svc *session.Service, all []mcp.Server) error {
			servers, err := session.PickServers(all, args)
			if err != nil {
				return err
			}
			if verb == "logout" {
				if err = svc.Logout(servers[0]); err == nil {
					a.printf("no login is stored for %s\n", args[0])
				}
				return err
			}
			err = svc.Login(cmd.Context(), servers[0], *dir, func(address string) {
				a.printf("Open this address in a browser on this machine within 5 minutes:\n%s\n", address)
			})
			if err == nil {
				a.printf("logged in at %s\n", args[0])
			}
			return err
		}),
	}
}

func (a *app) mcpServeCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve timeline, jumps and cards to another agent, on standard input and output",
		Long: `Serve timeline, jumps and cards to another agent over MCP, on standard input and output. The
session is the one that the call names, the one whose id the client sends, or the only live one
of the directory. A jump requires an unambiguous session.`,
		RunE: a.withService(func(cmd *cobra.Command, _ []string, svc *session.Service) error {
			real, err := session.RealDir(*dir)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			err = mcpserver.New(svc, real, a.getenv).Run(ctx, io.NopCloser(a.stdin), nopCloser{a.stdout}, version)
			if ctx.Err() != nil || err == nil {
				return nil // the client ended it
			}
			return fmt.Errorf("mcp serve: the input is not JSON-RPC, one message a line: %w", err)
		}),
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func (a *app) mcpAddCommand() *cobra.Command {
	var s mcp.Server
	var env, headers []string
	cmd := &cobra.Command{
		Use:   "add NAME [--url URL | -- COMMAND ARGS…]",
		Short: "Add a server to your own configuration, or change one",
		Args:  cobra.MinimumNArgs(1),
		RunE: a.withHome(func(cmd *cobra.Command, args []string, h taskdir.Home) error {
			var err error
			s.Name = args[0]
			if len(args) > 1 {
				s.Command, s.Args = args[1], args[2:]
			}
			if s.Env, err = session.Pairs("--env", env, "="); err != nil {
				return err
			}
			if s.Headers, err = session.Pairs("--header", headers, ":"); err != nil {
				return err
			}
			// Only the form is checked: the server is started by its test, or by a task.
			if err := s.Check(); err != nil {
				return exit.Usagef("%v", err)
			}
			if err := mcp.Put(h.MCPServers(), s); err != nil {
				return err
			}
			a.printf("added %s; 'anamnesis mcp test %s' tries it\n", s.Name, s.Name)
			return nil
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&s.URL, "url", "", "address of a server that speaks streamable HTTP")
	fl.StringVar(&s.Cwd, "cwd", "", "where the command runs: project (outside the sandbox, with the project's code) "+
		"or an absolute directory (default: an empty directory)")
	fl.StringArrayVar(&env, "env", nil,
		"NAME=VALUE for the command; ${NAME} in it is replaced by your variable (repeatable)")
	fl.StringArrayVar(&headers, "header", nil,
		"NAME:VALUE for the address; ${NAME} in it is replaced by your variable (repeatable)")
	fl.StringArrayVar(&s.ReadOnlyTools, "read-only", nil,
		"tool of the server that changes nothing and needs no approval (repeatable)")
	fl.IntVar(&s.StartTimeoutSeconds, "start-timeout", 0, fmt.Sprintf("seconds it may take to start (default %d)",
		int(mcp.DefaultStartTimeout.Seconds())))
	fl.IntVar(&s.CallTimeoutSeconds, "call-timeout", 0,
		fmt.Sprintf("seconds a call may take without progress (default %d)", int(mcp.DefaultCallTimeout.Seconds())))
	return cmd
}

func (a *app) mcpListCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the servers a task in the directory would have",
		RunE: a.withServers(dir, func(_ *cobra.Command, _ []string, svc *session.Service, all []mcp.Server) error {
			entries, err := svc.ListServers(all)
			if err != nil {
				return err
			}
			return a.show(entries, func() { a.out().Servers(entries) })
		}),
	}
	return a.jsonFlag(cmd, "one JSON array")
}

// resolveGrants checks the requested grants, which need named programs.
func resolveGrants(g guard.Grants, names []string) (guard.Grants, error) {
	if len(names) == 0 && len(g.Lines()) > 0 {
		return g, exit.Usagef("the name of the server is missing")
	}
	out, err := g.Resolve()
	if err != nil {
		return out, exit.Usagef("%v", err)
	}
	return out, nil
}

// withServers runs a verb with the servers of a directory.
func (a *app) withServers(dir *string,
	run func(*cobra.Command, []string, *session.Service, []mcp.Server) error) runE {
	return a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
		real, err := session.RealDir(*dir)
		if err != nil {
			return err
		}
		servers, warnings, err := svc.MCPServers(real)
		a.warn(warnings...)
		if err != nil {
			return err
		}
		return run(cmd, args, svc, servers)
	})
}

func (a *app) mcpRemoveCommand(verb, short string, dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: a.withServers(dir, func(cmd *cobra.Command, args []string, svc *session.Service, all []mcp.Server) error {
			ofProject := func(s mcp.Server) bool { return s.Name == args[0] && s.Project != "" }
			if verb == "revoke" && !slices.ContainsFunc(all, ofProject) {
				return exit.Usagef("no server of the project is called %s; "+
					"'anamnesis mcp remove' removes one of your own", args[0])
			}
			withdrawn, err := svc.RemoveServer(all, args[0])
			if err != nil {
				return err
			}
			if withdrawn {
				a.printf("%s is no longer approved; its entry in the project's %s stays\n", args[0], mcp.ProjectFile)
				return nil
			}
			a.printf("removed %s\n", args[0])
			return nil
		}),
	}
}

func (a *app) mcpTestCommand(dir, sandbox *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test [NAME…]",
		Args:  cobra.ArbitraryArgs,
		Short: "Start servers and list their tools",
		RunE: a.withServers(dir, func(cmd *cobra.Command, args []string, svc *session.Service, all []mcp.Server) error {
			servers, err := session.PickServers(all, args)
			if err != nil {
				return err
			}
			var errs []error
			for _, s := range servers {
				errs = append(errs, a.mcpTest(cmd.Context(), svc, s, *dir, *sandbox))
			}
			return errors.Join(errs...)
		}),
	}
	return a.jsonFlag(cmd, "one JSON object for each server")
}

func (a *app) mcpTest(ctx context.Context, svc *session.Service, s mcp.Server, dir, sandbox string) error {
	s, err := svc.ApprovedServer(s)
	if err != nil {
		return err
	}
	r, err := svc.ProbeServer(ctx, s, dir, sandbox, a.noteLine)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Name string `json:"name"`
			mcp.Report
		}{s.Name, r})
	}
	a.out().ServerReport(s, r)
	return nil
}

func (a *app) noteLine(text string) { a.notef("%s", show.OneLine(text)) }

func (a *app) mcpApproveCommand(dir, sandbox *string) *cobra.Command {
	var yes bool
	var grants guard.Grants
	cmd := &cobra.Command{
		Use:   "approve [NAME…]",
		Args:  cobra.ArbitraryArgs,
		Short: "Show what a project's servers run and say of their tools, and approve it",
		Long: `Show what a project's servers run and how they describe their tools, and approve them. The
approval covers the command, the programs of the project that it runs or names, and the
descriptions of the tools. If one of them changes, you are asked again. A project's server runs
in a sandbox. The flags below grant more, and replace earlier grants.`,
		RunE: a.withServers(dir, func(cmd *cobra.Command, args []string, svc *session.Service, all []mcp.Server) error {
			grants, err := resolveGrants(grants, args)
			if err != nil {
				return err
			}
			// What the user configured needs no approval.
			all = slices.DeleteFunc(all, func(s mcp.Server) bool { return s.Project == "" })
			servers, err := session.PickServers(all, args)
			if err != nil {
				return err
			}
			for _, s := range servers {
				if s.URL != "" && len(grants.Lines()) > 0 {
					return exit.Usagef("MCP server %s: no program of it runs here, so there is nothing to grant",
						s.Name)
				}
				s.Grants = grants
				if err := a.mcpApprove(cmd.Context(), svc, s, *dir, *sandbox, yes); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	fl := cmd.Flags()
	fl.BoolVar(&yes, "yes", false, "approve without asking")
	fl.BoolVar(&grants.Network, "network", false, "grant the network, all of it: hosts cannot be told apart")
	fl.StringArrayVar(&grants.Read, "read", nil, "grant reading a directory or file outside the project (repeatable)")
	fl.StringArrayVar(&grants.Write, "write", nil,
		"grant reading and writing a directory outside the project (repeatable)")
	fl.StringArrayVar(&grants.Env, "env", nil, "grant a variable of yours, by its name (repeatable)")
	fl.StringArrayVar(&grants.Sockets, "socket", nil, "grant a Unix socket, by its path (repeatable)")
	return cmd
}

// mcpApprove asks twice: before the command runs, and about the server's descriptions.
func (a *app) mcpApprove(ctx context.Context, svc *session.Service, s mcp.Server, dir, sandbox string, yes bool) error {
	a.printf("%s would be started like this:\n  %s\n%s\n", s.Name, view.Clean(s.How()), view.Clean(s.Beyond()))
	if err := a.tty().Confirm(ctx, "MCP server "+s.Name, "Start it?", yes); err != nil {
		return err
	}
	r, err := svc.ProbeServer(ctx, s, dir, sandbox, a.noteLine)
	if err != nil {
		return err
	}
	a.out().ServerReport(s, r)
	return a.approve(ctx, pending{what: "MCP server", name: s.Name, question: "Approve the command and these tools?",
		approve: func() error { return svc.ApproveServer(s, r) }}, yes)
}
