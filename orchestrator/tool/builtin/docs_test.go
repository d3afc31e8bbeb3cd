package builtin_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/subagent"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
	"anamnesis/orchestrator/tool/web"
)

// TestToolsPage holds docs/reference/tools.md to the schemas it is made of; UPDATE_GOLDEN
// writes it anew.
func TestToolsPage(t *testing.T) {
	o := builtin.Options{Web: web.Options{Search: web.Search{Engine: "searxng", URL: "http://localhost"}}}
	var got bytes.Buffer
	got.WriteString("# The built-in tools\n\nMade from the tools' schemas by a test; what is said here is what the model is told. " +
		"Tools that come and go: those of [MCP servers](../guides/mcp.md) and [Skill](../guides/skills.md).\n")
	for _, t := range append(builtin.Tools(o), subagent.Tool(agents(), nil)) {
		describe(&got, t.Spec(), "")
	}
	asked, err := builtin.OptIn("SendDMail", "dmail")
	if err != nil {
		t.Fatal(err)
	}
	for _, t := range asked {
		describe(&got, t.Spec(), "Only where `--tools` names it. ")
	}
	page := filepath.Join("..", "..", "..", "docs", "reference", "tools.md")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(page, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("docs/reference/tools.md is not what the tools say of themselves; run with UPDATE_GOLDEN=1")
	}
}

// agents are subagents of both kinds.
func agents() []op.Agent {
	return []op.Agent{
		{Name: "coder", Description: "Makes a change."},
		{Name: "explore", Description: "Finds something out.", ReadOnly: true},
	}
}

func describe(b *bytes.Buffer, s tool.Spec, lead string) {
	needs := "Needs approval."
	switch {
	case s.ReadOnly:
		needs = "Needs no approval."
	case s.Edits:
		needs = "Needs approval, which `--approval edits` gives."
	}
	if s.Delegates {
		needs = "Needs no approval: what the subagent does is approved call by call."
		lead += "Only where the agent has [subagents](../guides/subagents.md). "
	}
	switch s.Name {
	case "SearchWeb":
		lead += "Only where a search engine is [configured](../guides/web-tools.md). "
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n%s%s\n", s.Name, strings.TrimSpace(s.Description), lead, needs)
	if len(s.Schema.Properties) == 0 {
		b.WriteString("\nNo parameters.\n")
		return
	}
	b.WriteString("\n| parameter | form | |\n|---|---|---|\n")
	for _, name := range s.Schema.PropertyOrder {
		p := s.Schema.Properties[name]
		required := ""
		if slices.Contains(s.Schema.Required, name) {
			required = ", required"
		}
		fmt.Fprintf(b, "| `%s` | %s%s | %s |\n", name, form(p), required, strings.ReplaceAll(p.Description, "|", "\\|"))
	}
}

// form says what a value looks like.
func form(s *jsonschema.Schema) string {
	text := s.Type
	switch {
	case len(s.AnyOf) > 0:
		var forms []string
		for _, alternative := range s.AnyOf {
			forms = append(forms, form(alternative))
		}
		text = strings.Join(forms, ", or ")
	case s.Type == "object" && len(s.Properties) > 0:
		text = "{" + strings.Join(s.PropertyOrder, ", ") + "}"
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		text = strings.Join(values, ", ")
	case s.Minimum != nil && s.Maximum != nil:
		text += fmt.Sprintf(", %.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.Type == "array" && s.Items != nil:
		text += " of " + form(s.Items)
	}
	if s.MaxItems != nil {
		text += fmt.Sprintf(", at most %d", *s.MaxItems)
	}
	return text
}
