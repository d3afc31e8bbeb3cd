//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/runtime"
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
		Long: "MCP servers give the agent more tools. Your own are kept in mcp.json of the program's configuration; a project's stand in\n" +
			".mcp.json of its directory and are started only when you approved them, as they are now. They run in a sandbox, with what you granted.",
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", ".", "directory of the project")
	cmd.PersistentFlags().StringVar(&sandbox, "sandbox", "", "what test and approve run a project's server in: world (default) or off")
	cmd.AddCommand(a.mcpAddCommand(), a.mcpListCommand(&dir), a.mcpRemoveCommand(&dir), a.mcpTestCommand(&dir, &sandbox), a.mcpApproveCommand(&dir, &sandbox))
	return cmd
}

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
			if s.Env, err = pairs("--env", env, "="); err != nil {
				return err
			}
			if s.Headers, err = pairs("--header", headers, ":"); err != nil {
				return err
			}
			if err := s.Check(); err != nil {
				return usageError("%v", err)
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
	fl.StringArrayVar(&env, "env", nil, "NAME=VALUE for the command; ${NAME} in it stands for your variable (repeatable)")
	fl.StringArrayVar(&headers, "header", nil, "NAME:VALUE for the address; ${NAME} in it stands for your variable (repeatable)")
	fl.StringArrayVar(&s.ReadOnlyTools, "read-only", nil, "tool of the server that changes nothing and needs no approval (repeatable)")
	fl.IntVar(&s.StartTimeoutSeconds, "start-timeout", 0, fmt.Sprintf("seconds it may take to start (default %d)", int(mcp.DefaultStartTimeout.Seconds())))
	fl.IntVar(&s.CallTimeoutSeconds, "call-timeout", 0, fmt.Sprintf("seconds a call may take without progress (default %d)", int(mcp.DefaultCallTimeout.Seconds())))
	return cmd
}

// pairs reads NAME=VALUE flags.
func pairs(flag string, in []string, sep string) (map[string]string, error) {
	out := make(map[string]string, len(in))
	for _, kv := range in {
		k, v, ok := strings.Cut(kv, sep)
		if !ok || strings.TrimSpace(k) == "" {
			return nil, usageError("%s %q: want NAME%sVALUE", flag, kv, sep)
		}
		out[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
	return out, nil
}

// mcpEntry is a server as `mcp list` shows it.
type mcpEntry struct {
	Name     string `json:"name"`
	Scope    string `json:"scope"` // user | project
	How      string `json:"how"`
	Approved bool   `json:"approved"`
	Disabled bool   `json:"disabled"`
	Error    string `json:"error,omitempty"` // what is wrong with its entry
	// Grants are what an approved server of a project gets beyond its sandbox.
	Grants *guard.Grants `json:"grants,omitempty"`
}

func (a *app) mcpListCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the servers a task in the directory would have",
		RunE: func(cmd *cobra.Command, _ []string) error {
			servers, trust, err := a.serversIn(*dir)
			if err != nil {
				return err
			}
			svc, err := a.service()
			if err != nil {
				return err
			}
			entries, secrets := []mcpEntry{}, svc.Secrets(nil)
			for _, s := range servers {
				e := mcpEntry{Name: s.Name, Scope: "user", How: session.WithoutSecrets(s.How(), secrets), Disabled: s.Disabled}
				if s.Project != "" {
					e.Scope = "project"
				}
				if s.Fault != nil {
					e.Error = s.Fault.Error()
				} else if e.Approved, err = mcp.Approved(s, trust); err != nil {
					return err
				} else if e.Approved && s.Project != "" {
					if s, err = mcp.Granted(s, trust); err != nil {
						return err
					}
					e.Grants = &s.Grants
				}
				entries = append(entries, e)
			}
			return a.show(entries, func() {
				for _, e := range entries {
					state := ""
					switch {
					case e.Error != "":
						state = "  (no server: " + e.Error + ")"
					case e.Disabled:
						state = "  (disabled)"
					case !e.Approved:
						state = "  (not approved: 'anamnesis mcp approve " + e.Name + "')"
					default:
						state = gets(e.Grants)
					}
					a.println(view.Line(fmt.Sprintf("%-16s %-8s %s%s", e.Name, e.Scope, e.How, state), a.width()))
				}
			})
		},
	}
	a.jsonFlag(cmd, "one JSON array")
	return cmd
}

// gets says what was granted, at the end of a line of a list.
func gets(g *guard.Grants) string {
	if g == nil || len(g.Lines()) == 0 {
		return ""
	}
	return "  (granted: " + strings.Join(g.Lines(), "; ") + ")"
}

// grantFlags are the flags of what a program of a project gets beyond its sandbox.
func grantFlags(cmd *cobra.Command, g *guard.Grants) {
	fl := cmd.Flags()
	fl.BoolVar(&g.Network, "network", false, "grant the network, all of it: hosts cannot be told apart")
	fl.StringArrayVar(&g.Read, "read", nil, "grant reading a directory or file outside the project (repeatable)")
	fl.StringArrayVar(&g.Write, "write", nil, "grant reading and writing a directory outside the project (repeatable)")
	fl.StringArrayVar(&g.Env, "env", nil, "grant a variable of yours, by its name (repeatable)")
	fl.StringArrayVar(&g.Sockets, "socket", nil, "grant a Unix socket, by its path (repeatable)")
}

// resolveGrants checks the grants that were asked for: they are for what is named.
func resolveGrants(g guard.Grants, names []string) (guard.Grants, error) {
	if len(names) == 0 && len(g.Lines()) > 0 {
		return g, usageError("say what the grants are for: NAME is missing")
	}
	out, err := g.Resolve()
	if err != nil {
		return out, usageError("%v", err)
	}
	return out, nil
}

// serversIn returns the servers of a directory and the approvals.
func (a *app) serversIn(dir string) ([]mcp.Server, *guard.Trust, error) {
	svc, err := a.service()
	if err != nil {
		return nil, nil, err
	}
	if dir, err = session.RealDir(dir); err != nil {
		return nil, nil, err
	}
	servers, warnings, err := svc.MCPServers(dir)
	a.warn(warnings...)
	return servers, guard.OpenTrust(svc.Home.Approvals()), err
}

func (a *app) mcpRemoveCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"revoke"},
		Short:   "Take a server out of your own configuration, or take a project's approval back",
		Args:    cobra.ExactArgs(1),
		RunE: a.withHome(func(cmd *cobra.Command, args []string, h taskdir.Home) error {
			servers, trust, err := a.serversIn(*dir)
			if err != nil {
				return err
			}
			for _, s := range servers {
				if s.Name == args[0] && s.Project != "" {
					if err := mcp.Revoke(s, trust); err != nil {
						return err
					}
					a.printf("%s is no longer approved; it stands in the project's %s still\n", s.Name, mcp.ProjectFile)
					return nil
				}
			}
			if err := mcp.Remove(h.MCPServers(), args[0]); errors.Is(err, mcp.ErrNoServer) {
				return usageError("%v; 'anamnesis mcp list' shows them", err)
			} else if err != nil {
				return err
			}
			a.printf("removed %s\n", args[0])
			return nil
		}),
	}
}

// pick gives the named servers, or all that can be started.
func pick(servers []mcp.Server, names []string) ([]mcp.Server, error) {
	var out []mcp.Server
	for _, name := range names {
		i := slices.IndexFunc(servers, func(s mcp.Server) bool { return s.Name == name })
		if i < 0 {
			return nil, usageError("%v: %s; 'anamnesis mcp list' shows them", mcp.ErrNoServer, name)
		}
		out = append(out, servers[i])
	}
	if len(names) == 0 {
		enabled := slices.DeleteFunc(slices.Clone(servers), func(s mcp.Server) bool { return s.Disabled })
		out = slices.DeleteFunc(slices.Clone(enabled), func(s mcp.Server) bool { return s.Fault != nil })
		if len(out) == 0 {
			out = enabled // what is wrong with the first is told
		}
	}
	for _, s := range out {
		if s.Fault != nil {
			return nil, usageError("%v", s.Fault)
		}
	}
	if len(out) == 0 {
		return nil, usageError("no MCP server is configured; 'anamnesis mcp add' adds one")
	}
	return out, nil
}

func (a *app) mcpTestCommand(dir, sandbox *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test [NAME…]",
		Args:  cobra.ArbitraryArgs,
		Short: "Start servers and list their tools",
		RunE: func(cmd *cobra.Command, args []string) error {
			servers, trust, err := a.serversIn(*dir)
			if err != nil {
				return err
			}
			if servers, err = pick(servers, args); err != nil {
				return err
			}
			var errs []error
			for _, s := range servers {
				errs = append(errs, a.mcpTest(cmd.Context(), s, trust, *dir, *sandbox))
			}
			return errors.Join(errs...)
		},
	}
	a.jsonFlag(cmd, "one JSON object for each server")
	return cmd
}

func (a *app) mcpTest(ctx context.Context, s mcp.Server, trust *guard.Trust, dir, sandbox string) error {
	ok, err := mcp.Approved(s, trust)
	if err != nil {
		return err
	}
	if !ok {
		return &exitError{exitRefused, fmt.Errorf("MCP server %s: not started, because nobody approved it as it is now; 'anamnesis mcp approve %s' shows it and asks", s.Name, s.Name)}
	}
	if s, err = mcp.Granted(s, trust); err != nil {
		return err
	}
	r, err := a.mcpProbe(ctx, s, dir, sandbox)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Name string `json:"name"`
			mcp.Report
		}{s.Name, r})
	}
	a.showReport(s, r)
	return nil
}

func (a *app) mcpProbe(ctx context.Context, s mcp.Server, dir, sandbox string) (mcp.Report, error) {
	dir, err := session.RealDir(dir)
	if err != nil {
		return mcp.Report{}, err
	}
	o := mcp.Options{Dir: dir, Getenv: a.getenv, Program: version}
	if s.Project != "" {
		h, err := a.home()
		if err != nil {
			return mcp.Report{}, err
		}
		confine, err := guard.ParseConfinement(cmp.Or(sandbox, string(guard.ConfineWorld)))
		if err != nil {
			return mcp.Report{}, usageError("%v", err)
		}
		temp, err := os.MkdirTemp("", "anamnesis-")
		if err != nil {
			return mcp.Report{}, fmt.Errorf("MCP server %s: %w", s.Name, err)
		}
		defer os.RemoveAll(temp)
		kept, err := probeQuarantine(h)
		if err != nil {
			return mcp.Report{}, fmt.Errorf("MCP server %s: %w", s.Name, err)
		}
		quiet := true
		o.Note = func(text string) {
			quiet = false
			a.notef("%s", oneLine(text))
		}
		defer func() {
			if quiet {
				os.RemoveAll(kept)
			}
		}()
		if o.Sandbox, err = runtime.NewSandbox(ctx, h, guard.SandboxOptions{Confine: confine, World: dir, Temp: temp, Quarantine: kept}); err != nil {
			return mcp.Report{}, fmt.Errorf("MCP server %s: %w", s.Name, err)
		}
	}
	r, err := mcp.Probe(ctx, s, o)
	if err != nil {
		return r, fmt.Errorf("MCP server %s: %w", s.Name, err)
	}
	return r, nil
}

// probeQuarantine makes the directory for what git would run of the files that a
// server leaves which no task started.
func probeQuarantine(h taskdir.Home) (string, error) {
	dir := filepath.Join(h.State, "quarantine")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, "mcp-")
}

func (a *app) showReport(s mcp.Server, r mcp.Report) {
	info := r.Info
	if info == "" {
		info = "a server that does not name itself"
	}
	a.printf("%s: %s, %d tool(s)\n", s.Name, view.Clean(info), len(r.Tools))
	for _, t := range r.Tools {
		a.println(view.Clean(t.String()))
	}
}

func (a *app) mcpApproveCommand(dir, sandbox *string) *cobra.Command {
	var yes bool
	var grants guard.Grants
	cmd := &cobra.Command{
		Use:   "approve [NAME…]",
		Args:  cobra.ArbitraryArgs,
		Short: "Show what a project's servers run and say of their tools, and approve it",
		Long: "Show what a project's servers run and say of their tools, and approve it. An approval holds for exactly that: the command, the programs of\n" +
			"the project it runs or names, and the descriptions of the tools. Whatever changes is asked about again. A project's server runs in a\n" +
			"sandbox; what it gets beyond that is what you grant here, and it takes the place of what was granted before.",
		RunE: func(cmd *cobra.Command, args []string) error {
			servers, trust, err := a.serversIn(*dir)
			if err != nil {
				return err
			}
			if grants, err = resolveGrants(grants, args); err != nil {
				return err
			}
			servers = slices.DeleteFunc(servers, func(s mcp.Server) bool { return s.Project == "" })
			if servers, err = pick(servers, args); err != nil {
				return err
			}
			for _, s := range servers {
				if s.URL != "" && len(grants.Lines()) > 0 {
					return usageError("MCP server %s: no program of it runs here, so there is nothing to grant", s.Name)
				}
				s.Grants = grants
				if err := a.mcpApprove(cmd.Context(), s, trust, *dir, *sandbox, yes); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	grantFlags(cmd, &grants)
	return cmd
}

// mcpApprove asks twice: before the command runs, and about what the server
// then says of its tools.
func (a *app) mcpApprove(ctx context.Context, s mcp.Server, trust *guard.Trust, dir, sandbox string, yes bool) error {
	a.printf("%s would be started like this:\n  %s\n%s\n", s.Name, view.Clean(s.How()), view.Clean(s.Beyond()))
	if err := a.confirm(ctx, "MCP server "+s.Name, "Start it?", yes); err != nil {
		return err
	}
	r, err := a.mcpProbe(ctx, s, dir, sandbox)
	if err != nil {
		return err
	}
	a.showReport(s, r)
	if err := a.confirm(ctx, "MCP server "+s.Name, "Approve the command and these tools?", yes); err != nil {
		return err
	}
	if err := mcp.ApproveCommand(s, trust); err != nil {
		return err
	}
	if err := mcp.ApproveTools(s, r, trust); err != nil {
		return err
	}
	a.printf("approved %s\n", s.Name)
	return nil
}

// confirm asks a user at the terminal to approve what was shown. Anything but
// a yes is an error that says that it is not approved; where there is no terminal,
// it names the flag.
func (a *app) confirm(ctx context.Context, what, question string, yes bool) error {
	if yes {
		return nil
	}
	refused := &exitError{exitRefused, fmt.Errorf("%s: not approved", what)}
	if !a.interactive() {
		return errors.Join(&exitError{exitRefused, errors.New("there is no terminal to ask at; --yes approves what is shown")}, refused)
	}
	line, err := a.askLine(ctx, question+" [y/N] ")
	if err != nil || !isYes(line) {
		return errors.Join(err, refused)
	}
	return nil
}
