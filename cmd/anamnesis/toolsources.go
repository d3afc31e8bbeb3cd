//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/command"
	"anamnesis/orchestrator/tool/mcp"
)

// addSources gives a task the tools that come and go in its directory. done
// ends what serves them.
func (a *app) addSources(ctx context.Context, h taskdir.Home, dir string, f agentFlags, keys *view.Keyboard, o *runtime.Options) (done func(), err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil // opening the task says what to do
	}
	dir, err = realDir(dir)
	if err != nil {
		return nil, err
	}
	servers, err := a.mcpServers(h, dir)
	if err != nil {
		return nil, err
	}
	trust := guard.OpenTrust(h.Approvals())
	own := &command.Source{Folders: toolFolders(h, dir), Trust: trust}
	mo := mcp.Options{Dir: dir, Getenv: a.getenv, Program: version, FirstWait: f.toolsWait, Trust: trust}
	mo.Note = func(text string) { fmt.Fprintf(a.stderr, "anamnesis: %s\n", view.Clean(text)) }
	if keys != nil {
		mo.Ask, own.Ask = questions{keys}.approves, questions{keys}.approves
	}
	o.Sources = append(o.Sources, own)
	if len(servers) == 0 {
		return func() {}, nil
	}
	set := mcp.Open(ctx, servers, mo)
	o.Sources = append(o.Sources, set)
	return set.Close, nil
}

// toolFolders are the folders of command tools that count in a directory. The
// person's own come first: no project's tool can take their names.
func toolFolders(h taskdir.Home, dir string) []command.Folder {
	return []command.Folder{{Path: h.Tools()}, {Path: filepath.Join(dir, command.ProjectDir), Project: dir}}
}

// realDir is a directory's absolute path without links: what a project's
// approvals go by.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", usageError("directory %s: %v", dir, err)
	}
	return abs, nil
}

// mcpServers lists the servers that are configured for a directory: the
// person's own, and the project's that have another name. A project's file that
// cannot be read costs its own servers only.
func (a *app) mcpServers(h taskdir.Home, dir string) ([]mcp.Server, error) {
	servers, err := mcp.Load(h.MCPServers(), "")
	if err != nil {
		return nil, usageError("%v", err)
	}
	project, err := mcp.Load(filepath.Join(dir, mcp.ProjectFile), dir)
	if err != nil {
		fmt.Fprintf(a.stderr, "anamnesis: warning: %v; its servers are not used\n", err)
	}
	for _, p := range project {
		if slices.ContainsFunc(servers, func(s mcp.Server) bool { return s.ToolPrefix() == p.ToolPrefix() }) {
			fmt.Fprintf(a.stderr, "anamnesis: warning: the MCP server %s of %s is not used: your own configuration has one of that name\n", p.Name, mcp.ProjectFile)
			continue
		}
		servers = append(servers, p)
	}
	return servers, nil
}
