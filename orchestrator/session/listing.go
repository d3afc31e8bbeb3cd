package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/tool/mcp"
	"anamnesis/orchestrator/workspace"
)

// ListedAgent is an agent that a run in a directory can name.
type ListedAgent struct {
	Name        string `json:"name"`
	Scope       string `json:"scope"` // project | user | embedded
	From        string `json:"from"`
	Description string `json:"description,omitempty"`
	Approved    bool   `json:"approved"`
	Error       string `json:"error,omitempty"`
}

// ListAgents lists the agents of a directory.
func (s *Service) ListAgents(ctx context.Context, dir string) ([]ListedAgent, error) {
	loader, err := s.Agents(dir)
	if err != nil {
		return nil, err
	}
	entries, err := loader.List()
	if err != nil {
		return nil, err
	}
	listed := []ListedAgent{}
	for _, e := range entries {
		l := ListedAgent{Name: e.Name, Scope: string(e.Scope), From: e.From}
		if who, err := loader.Load(e.From); err != nil {
			l.Error = err.Error()
		} else if l.Approved, err = who.Allow(ctx, s.trust(), nil); err != nil {
			return nil, err
		} else {
			l.Description = who.Spec.Description
		}
		listed = append(listed, l)
	}
	return listed, nil
}

// ListedServer is an MCP server that a task in a directory would have.
type ListedServer struct {
	Name     string `json:"name"`
	Scope    string `json:"scope"` // user | project
	How      string `json:"how"`   // without secrets
	Approved bool   `json:"approved"`
	Disabled bool   `json:"disabled"`
	Cwd      string `json:"cwd,omitempty"`   // of a user's own server; empty: an empty directory
	Error    string `json:"error,omitempty"` // what is wrong with its entry
	// Grants are what an approved server of a project may do beyond its sandbox.
	Grants *guard.Grants `json:"grants,omitempty"`
}

// ListServers lists servers.
func (s *Service) ListServers(servers []mcp.Server) ([]ListedServer, error) {
	listed, secrets := []ListedServer{}, s.Secrets(nil)
	for _, srv := range servers {
		e := ListedServer{Name: srv.Name, Scope: "user", How: WithoutSecrets(srv.How(), secrets),
			Disabled: srv.Disabled}
		if srv.Project != "" {
			e.Scope = "project"
		} else {
			e.Cwd = srv.Cwd
		}
		granted, err := mcp.Granted(srv, s.trust())
		switch {
		case srv.Fault != nil:
			e.Error = srv.Fault.Error()
		case errors.Is(err, mcp.ErrUnapproved):
		case err != nil:
			return nil, err
		default:
			e.Approved = true
			if srv.Project != "" {
				e.Grants = &granted.Grants
			}
		}
		listed = append(listed, e)
	}
	return listed, nil
}

// PickServers returns the named servers, or all that can be started.
func PickServers(servers []mcp.Server, names []string) ([]mcp.Server, error) {
	var out []mcp.Server
	for _, name := range names {
		i := slices.IndexFunc(servers, func(s mcp.Server) bool { return s.Name == name })
		if i < 0 {
			return nil, remedy.With(Usagef("%v: %s", mcp.ErrNoServer, name), remedy.ListServers, "")
		}
		out = append(out, servers[i])
	}
	if len(names) == 0 {
		enabled := slices.DeleteFunc(slices.Clone(servers), func(s mcp.Server) bool { return s.Disabled })
		out = slices.DeleteFunc(slices.Clone(enabled), func(s mcp.Server) bool { return s.Fault != nil })
		if len(out) == 0 {
			out = enabled // the fault of the first is reported
		}
	}
	for _, s := range out {
		if s.Fault != nil {
			return nil, Usagef("%v", s.Fault)
		}
	}
	if len(out) == 0 {
		return nil, remedy.With(Usagef("no MCP server is configured"), remedy.AddServer, "")
	}
	return out, nil
}

// ProbeServer starts a server as a task in dir would, asks for its tools, and ends it. A
// project's server runs in a sandbox; an empty confinement means its default. note receives
// what the sandbox moves to quarantine.
func (s *Service) ProbeServer(ctx context.Context, srv mcp.Server, dir, sandbox string, note func(text string)) (
	r mcp.Report, err error) {
	err = s.withServer(ctx, srv, dir, sandbox, note, func(o mcp.Options) (err error) {
		r, err = mcp.Probe(ctx, srv, o)
		return err
	})
	return r, err
}

// withServer calls exchange with the options under which a task in dir would start a server.
func (s *Service) withServer(ctx context.Context, srv mcp.Server, dir, sandbox string, note func(text string),
	exchange func(mcp.Options) error) error {
	dir, err := RealDir(dir)
	if err != nil {
		return err
	}
	o := mcp.Options{Dir: dir, Empty: s.Home.Empty(), Getenv: s.getenv, Program: s.o.Version, Logins: s.Home.Logins()}
	if srv.Project != "" {
		confine, err := guard.ParseConfinement(cmp.Or(sandbox, string(guard.ConfineWorld)))
		if err != nil {
			return Usagef("%v", err)
		}
		done, err := s.probeSandbox(ctx, &o, confine, note)
		if err != nil {
			return fmt.Errorf("MCP server %s: %w", srv.Name, err)
		}
		defer done()
	}
	if err := exchange(o); err != nil {
		return fmt.Errorf("MCP server %s: %w", srv.Name, err)
	}
	return nil
}

// probeSandbox makes the sandbox of a server without a task, with its own quarantine. done
// removes its files, except a quarantine that is not empty.
func (s *Service) probeSandbox(ctx context.Context, o *mcp.Options, confine guard.Confinement, note func(text string)) (
	done func(), err error) {
	temp, err := os.MkdirTemp("", "anamnesis-")
	if err != nil {
		return nil, err
	}
	quarantines := filepath.Join(s.Home.State, "quarantine")
	err = os.MkdirAll(quarantines, 0o700)
	kept, quiet := "", true
	if err == nil {
		kept, err = os.MkdirTemp(quarantines, "mcp-")
	}
	if err == nil {
		o.Note = func(text string) {
			quiet = false
			note(text)
		}
		o.Sandbox, err = workspace.NewSandbox(ctx, s.Home,
			guard.SandboxOptions{Confine: confine, World: o.Dir, Temp: temp, Quarantine: kept})
	}
	done = func() {
		os.RemoveAll(temp)
		if quiet && kept != "" {
			os.RemoveAll(kept)
		}
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// ApprovedServer returns a server with what the user granted it, or ErrNotApproved.
func (s *Service) ApprovedServer(srv mcp.Server) (mcp.Server, error) {
	granted, err := mcp.Granted(srv, s.trust())
	if errors.Is(err, mcp.ErrUnapproved) {
		err = fmt.Errorf("MCP server %s: not started: %w", srv.Name, ErrNotApproved)
		err = remedy.With(err, remedy.ApproveServer, srv.Name)
	}
	return granted, err
}

// ApproveServer records the approval of a server's command and of the tools it reported.
func (s *Service) ApproveServer(srv mcp.Server, r mcp.Report) error {
	if err := mcp.ApproveCommand(srv, s.trust()); err != nil {
		return err
	}
	return mcp.ApproveTools(srv, r, s.trust())
}

// RemoveServer withdraws the approval of a project's server, which is among servers, and reports that it
// did; or else it removes the server of that name from the user's configuration.
func (s *Service) RemoveServer(servers []mcp.Server, name string) (withdrawn bool, err error) {
	for _, srv := range servers {
		if srv.Name == name && srv.Project != "" {
			return true, mcp.Revoke(srv, s.trust())
		}
	}
	if err := mcp.Remove(s.Home.MCPServers(), name); errors.Is(err, mcp.ErrNoServer) {
		return false, remedy.With(&UsageError{err}, remedy.ListServers, "")
	} else if err != nil {
		return false, err
	}
	return false, nil
}

// Pairs reads NAME=VALUE flags.
func Pairs(flag string, in []string, sep string) (map[string]string, error) {
	out := make(map[string]string, len(in))
	for _, kv := range in {
		k, v, ok := strings.Cut(kv, sep)
		if !ok || strings.TrimSpace(k) == "" {
			return nil, Usagef("%s %q: want NAME%sVALUE", flag, kv, sep)
		}
		out[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
	return out, nil
}
