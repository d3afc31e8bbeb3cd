package mcp

import (
	"context"
	"fmt"
	"strings"

	"anamnesis/orchestrator/guard/consent"
)

// Report is a server's description of itself.
type Report struct {
	Info  string     `json:"info"` // its name and version; may be empty
	Tools []ToolInfo `json:"tools"`

	hash string
}

// ToolInfo is one tool of a Report, visible to a user.
type ToolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  string `json:"parameters,omitempty"` // JSON Schema; empty: it has none
}

// String formats the tool for the user who is to approve it.
func (t ToolInfo) String() string {
	text := fmt.Sprintf("  %s: %s", t.Name, strings.ReplaceAll(t.Description, "\n", "\n    "))
	if t.Parameters != "" {
		text += "\n    parameters: " + t.Parameters
	}
	return text
}

// Probe starts or reaches a server, asks what it offers and ends it. The caller has checked
// that it may be started; see Granted.
func Probe(ctx context.Context, s Server, o Options) (Report, error) {
	o = o.withDefaults()
	ses, err := connect(ctx, s, &o, events{changed: func() {}, progress: func(any, string) {}})
	if err != nil {
		return Report{}, err
	}
	defer ses.end()
	tools, err := ses.tools(ctx, s.startTimeout())
	if err != nil {
		return Report{}, err
	}
	return Report{Info: ses.info(), hash: hashTools(tools), Tools: describe(s, tools)}, nil
}

// Granted returns a server that may be started, a project's one with its grants. It returns
// ErrUnapproved if a project's server is not approved with its present content.
func Granted(s Server, trust *consent.Trust) (Server, error) {
	if s.Project == "" {
		return s, nil
	}
	hash, err := s.hash()
	if err != nil {
		return s, err
	}
	var ok bool
	s.Grants, ok, err = trust.Granted(s.approval(trustCommand, hash))
	if err == nil && !ok {
		err = s.unapproved()
	}
	return s, err
}

// ApproveCommand records that a user approved how a server is started, and its grants.
func ApproveCommand(s Server, trust *consent.Trust) error {
	hash, err := s.hash()
	if err != nil {
		return err
	}
	a := s.approval(trustCommand, hash)
	a.Grants = &s.Grants
	return trust.Approve(a)
}

// ApproveTools records that a user approved a server's descriptions of its tools.
func ApproveTools(s Server, r Report, trust *consent.Trust) error {
	return trust.Approve(s.approval(trustTools, r.hash))
}

// Revoke removes both approvals.
func Revoke(s Server, trust *consent.Trust) error {
	for _, kind := range []string{trustCommand, trustTools} {
		if err := trust.Revoke(s.approval(kind, "")); err != nil {
			return err
		}
	}
	return nil
}
