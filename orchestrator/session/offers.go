package session

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"anamnesis/orchestrator/tool/mcp"
)

// maxResources bounds the resources that one request names.
const maxResources = 8

var (
	promptNamed   = regexp.MustCompile(`^/([A-Za-z0-9_.-]+):(\S+)\s*`)
	resourceNamed = regexp.MustCompile(`(?:^|[\s(])@([A-Za-z0-9][A-Za-z0-9_.-]*):(\S*[^\s.,;:!?)])`)
)

// fromServers returns a request with the text of the MCP prompt that it begins with, as
// /SERVER:PROMPT, and of the resources that it names, as @SERVER:URI, at its end. Names of other
// servers than the directory's stay words.
func (s *Service) fromServers(ctx context.Context, dir, text string) (string, error) {
	prompt := promptNamed.FindStringSubmatch(text)
	resources := resourceNamed.FindAllStringSubmatch(text, maxResources)
	if prompt == nil && len(resources) == 0 {
		return text, nil
	}
	servers, _, err := s.MCPServers(dir)
	if err != nil {
		return "", err
	}
	out := text
	add := func(server, what string, get func(context.Context, mcp.Server, mcp.Options) (string, error)) error {
		i := slices.IndexFunc(servers, func(srv mcp.Server) bool { return srv.Name == server && !srv.Disabled })
		if i < 0 {
			return nil
		}
		srv, err := s.ApprovedServer(servers[i])
		if err != nil {
			return err
		}
		err = s.withServer(ctx, srv, dir, "", func(string) {}, func(o mcp.Options) error {
			got, err := get(ctx, srv, o)
			out += fmt.Sprintf("\n\n[%s of the MCP server %s]\n%s", what, server, got)
			return err
		})
		return err
	}
	if prompt != nil {
		if err := add(prompt[1], "prompt "+prompt[2], func(ctx context.Context, srv mcp.Server, o mcp.Options) (string, error) {
			return mcp.Prompt(ctx, srv, o, prompt[2], strings.TrimPrefix(text, prompt[0]))
		}); err != nil {
			return "", err
		}
	}
	for _, r := range resources {
		if err := add(r[1], "resource "+r[2], func(ctx context.Context, srv mcp.Server, o mcp.Options) (string, error) {
			return mcp.Resource(ctx, srv, o, r[2])
		}); err != nil {
			return "", err
		}
	}
	return out, nil
}

// Login logs the user in at an MCP server; see mcp.Login.
func (s *Service) Login(ctx context.Context, srv mcp.Server, dir string, show func(address string)) error {
	srv, err := s.ApprovedServer(srv)
	if err != nil {
		return err
	}
	return s.withServer(ctx, srv, dir, "", func(string) {}, func(o mcp.Options) error { return mcp.Login(ctx, srv, o, show) })
}

// Logout removes the stored login of an MCP server.
func (s *Service) Logout(srv mcp.Server) error {
	return mcp.Logout(srv, mcp.Options{Getenv: s.getenv, Logins: s.Home.Logins()})
}
