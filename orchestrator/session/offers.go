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
	var offers []mcp.Offer
	if m := promptNamed.FindStringSubmatch(text); m != nil {
		offers = append(offers,
			mcp.Offer{Server: m[1], Kind: "prompt", Name: m[2], Args: strings.TrimPrefix(text, m[0])})
	}
	for _, m := range resourceNamed.FindAllStringSubmatch(text, maxResources) {
		offers = append(offers, mcp.Offer{Server: m[1], Kind: "resource", Name: m[2]})
	}
	if len(offers) == 0 {
		return text, nil
	}
	servers, _, err := s.MCPServers(dir)
	if err != nil {
		return "", err
	}
	for _, f := range offers {
		i := slices.IndexFunc(servers, func(srv mcp.Server) bool { return srv.Name == f.Server && !srv.Disabled })
		if i < 0 {
			continue
		}
		srv, err := s.ApprovedServer(servers[i])
		if err != nil {
			return "", err
		}
		if err := s.withServer(ctx, srv, dir, "", func(string) {}, func(o mcp.Options) error {
			got, err := f.Get(ctx, srv, o)
			text += fmt.Sprintf("\n\n[%s %s of the MCP server %s]\n%s", f.Kind, f.Name, f.Server, got)
			return err
		}); err != nil {
			return "", err
		}
	}
	return text, nil
}

// Login logs the user in at an MCP server; see mcp.Login.
func (s *Service) Login(ctx context.Context, srv mcp.Server, dir string, show func(address string)) error {
	srv, err := s.ApprovedServer(srv)
	if err != nil {
		return err
	}
	return s.withServer(ctx, srv, dir, "", func(string) {}, func(o mcp.Options) error {
		return mcp.Login(ctx, srv, o, show)
	})
}

// Logout removes the stored login of an MCP server.
func (s *Service) Logout(srv mcp.Server) error {
	return mcp.Logout(srv, mcp.Options{Getenv: s.getenv, Logins: s.Home.Logins()})
}
