package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/retrieval/remote"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/mcp"
)

// EnvironSecrets returns the secret values of the environment: the API key, variables with
// telling names, and those in names. They are never recorded, shown or sent.
func EnvironSecrets(getenv func(string) string, names []string) []redact.Secret {
	known := redact.FromEnviron(os.Environ())
	for _, name := range append([]string{keyEnv}, names...) {
		if value := getenv(name); value != "" {
			known = append(known, redact.Secret{Kind: name, Value: value})
		}
	}
	return known
}

// Secrets returns the EnvironSecrets of this service.
func (s *Service) Secrets(names []string) []redact.Secret {
	return EnvironSecrets(s.getenv, append([]string{s.o.KeyEnv}, names...))
}

// TaskSecrets returns Secrets and those of the configuration of a task's directory: the
// credentials of MCP servers, the search and the embedder. Unreadable configuration is
// reported where it is used.
func (s *Service) TaskSecrets(dir string, names []string) []redact.Secret {
	known, h := s.Secrets(names), s.Home
	servers, _ := mcp.Load(h.MCPServers(), "")
	if dir != "" {
		project, _ := mcp.Load(filepath.Join(dir, mcp.ProjectFile), dir)
		servers = append(servers, project...)
	}
	for _, server := range servers {
		known = append(known, server.Secrets(s.getenv)...)
	}
	if real, err := RealDir(dir); err == nil && dir != "" { // granted to programs of the project
		approvals, _ := s.trust().List()
		for _, granted := range approvals {
			if granted.Dir == real && granted.Grants != nil {
				known = append(known, granted.Grants.Secrets(s.getenv)...)
			}
		}
	}
	if web, err := s.Web(); err == nil {
		known = append(known, redact.FromSetting("search-key", web.Search.Key)...)
		known = append(known, redact.FromSetting("search-url", web.Search.URL)...)
	}
	if e, err := remote.Load(h.Embedder(), s.getenv); err == nil && e != nil {
		key, address := e.Credentials()
		known = append(known, redact.FromSetting("embedder-key", key)...)
		known = append(known, redact.FromSetting("embedder-url", address)...)
	}
	return known
}

// Unset returns a warning about variables whose values a task redacts and which this process
// does not have; empty if there are none.
func Unset(getenv func(string) string, task string, names []string) string {
	set := func(name string) bool { return len(getenv(name)) >= redact.MinKnownBytes }
	unset := slices.DeleteFunc(slices.Clone(names), set)
	if len(unset) == 0 {
		return ""
	}
	return fmt.Sprintf("warning: task %s keeps the value of %s out of its record, as you asked, and it is not set "+
		"here: what holds the value would be recorded as it is; set it to the same value",
		task, strings.Join(unset, ", "))
}

func (o *opening) warnUnset(st *state.State) {
	if text := Unset(o.getenv, st.Opened.Task, st.Redact); text != "" {
		o.warn("%s", text)
	}
}

// WithoutSecrets returns a text of which a name is made.
func WithoutSecrets(text string, known []redact.Secret) string {
	text, _ = redact.New(nil, known).Text(text)
	return redact.ReplaceMarkers(text, func(string) string { return "redacted" })
}

func unknownTo(st *state.State, names []string) []string {
	var more []string
	for _, name := range names {
		if !slices.Contains(st.Redact, name) && !slices.Contains(more, name) {
			more = append(more, name)
		}
	}
	return more
}
