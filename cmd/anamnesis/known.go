//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/retrieval/remote"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/mcp"
)

// secrets are the values this process knows to be secret: the API key, the
// variables whose names say so, and those that were named. They are never
// recorded, shown or sent.
func (a *app) secrets(names []string) []redact.Secret {
	known := redact.FromEnviron(os.Environ())
	for _, name := range append([]string{"OPENAI_API_KEY"}, names...) {
		if value := a.getenv(name); value != "" {
			known = append(known, redact.Secret{Kind: name, Value: value})
		}
	}
	return known
}

// taskSecrets are those of secrets, and those of the configuration that counts in
// a task's directory: what MCP servers, the search and the embedder are reached
// with. What cannot be read of it is said by what uses it.
func (a *app) taskSecrets(dir string, names []string) []redact.Secret {
	known := a.secrets(names)
	h, err := a.home()
	if err != nil {
		return known
	}
	servers, _ := mcp.Load(h.MCPServers(), "")
	if dir != "" {
		project, _ := mcp.Load(filepath.Join(dir, mcp.ProjectFile), dir)
		servers = append(servers, project...)
	}
	for _, s := range servers {
		known = append(known, s.Secrets(a.getenv)...)
	}
	if real, err := realDir(dir); err == nil && dir != "" { // what was granted to programs of the project
		approvals, _ := guard.OpenTrust(h.Approvals()).List()
		for _, granted := range approvals {
			if granted.Dir == real && granted.Grants != nil {
				known = append(known, granted.Grants.Secrets(a.getenv)...)
			}
		}
	}
	if web, err := a.webOptions(h); err == nil {
		known = append(known, redact.FromSetting("search-key", web.Search.Key)...)
		known = append(known, redact.FromSetting("search-url", web.Search.URL)...)
	}
	if e, err := remote.Load(h.Embedder(), a.getenv); err == nil && e != nil {
		key, address := e.Credentials()
		known = append(known, redact.FromSetting("embedder-key", key)...)
		known = append(known, redact.FromSetting("embedder-url", address)...)
	}
	return known
}

// tellUnset warns of the variables whose values a task keeps out of its record
// and which this process cannot look for.
func (a *app) tellUnset(task string, names []string) {
	var unset []string
	for _, name := range names {
		if len(a.getenv(name)) < redact.MinKnownBytes {
			unset = append(unset, name)
		}
	}
	if len(unset) > 0 {
		fmt.Fprintf(a.stderr, "anamnesis: warning: task %s keeps the value of %s out of its record (--redact), and it is not set here: what holds the value would be recorded as it is; set it to the same value\n",
			task, strings.Join(unset, ", "))
	}
}

// unknownTo gives the names that are not among those a task has recorded.
func unknownTo(st *state.State, names []string) []string {
	var more []string
	for _, name := range names {
		if !slices.Contains(st.Redact, name) && !slices.Contains(more, name) {
			more = append(more, name)
		}
	}
	return more
}
