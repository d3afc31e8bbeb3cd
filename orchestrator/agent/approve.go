package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
)

// trustKind is the kind of an approval of a project's agent.
const trustKind = "agent"

// approval describes the project's part, as a user approves it: every file of the spec,
// by its content.
func (l *Loaded) approval() consent.Approval {
	h := sha256.New()
	for _, f := range l.brought {
		fmt.Fprintf(h, "%q %d\n%s\n", f.path, len(f.data), f.data)
	}
	sum := hex.EncodeToString(h.Sum(nil))
	return consent.Approval{Kind: trustKind, Name: l.brought[0].path, Dir: l.project, Hash: sum}
}

// Text shows the files of the spec that the project brought; empty: none.
func (l *Loaded) Text() string {
	var sb strings.Builder
	for _, f := range l.brought {
		fmt.Fprintf(&sb, "--- %s\n%s\n", f.path, strings.TrimRight(string(f.data), "\n"))
	}
	return sb.String()
}

// Allow reports whether the spec may be used: none of it came with the project, or a user
// approved all of that with its present content, or says yes; see consent.Trust.Allow.
func (l *Loaded) Allow(ctx context.Context, trust *consent.Trust, ask func(ctx context.Context, question string) bool) (
	bool, error) {
	if len(l.brought) == 0 {
		return true, nil
	}
	return trust.Allow(ctx, l.approval(), ask, func() string {
		return fmt.Sprintf("The project brings the agent %s:\n%s\nUse it?", l.Spec.Name, tool.Visible(l.Text()))
	})
}

// Approve records that a user approved the present content of what the project brought.
func (l *Loaded) Approve(trust *consent.Trust) error {
	if len(l.brought) == 0 {
		return nil
	}
	return trust.Approve(l.approval())
}
