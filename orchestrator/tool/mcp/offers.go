package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/orchestrator/tool"
)

// Offer is what a server offers beside tools: of the kind prompt by its name, of the kind resource by its URI.
type Offer struct{ Server, Kind, Name, Args string }

// Get starts or reaches the server as Probe does and returns what it offers as text, within the server's start
// timeout. Other content than text is named.
func (f Offer) Get(ctx context.Context, s Server, o Options) (string, error) {
	o = o.withDefaults()
	ses, err := connect(ctx, s, &o, events{changed: func() {}, progress: func(any, string) {}})
	if err != nil {
		return "", err
	}
	defer ses.end()
	ctx, cancel := context.WithTimeoutCause(ctx, s.startTimeout(), errSlow)
	defer cancel()
	get := f.resource
	if f.Kind == "prompt" {
		get = f.prompt
	}
	contents, err := get(ctx, ses.cs)
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	var text strings.Builder
	for _, c := range contents {
		text.WriteString(contentText(c) + "\n")
	}
	return strings.TrimSpace(text.String()), nil
}

func (f Offer) prompt(ctx context.Context, cs *sdk.ClientSession) (contents []sdk.Content, err error) {
	var names []string
	for p, err := range cs.Prompts(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list its prompts: %w", err)
		}
		if names = append(names, oneLine(p.Name)); p.Name != f.Name {
			continue
		}
		values, err := promptArguments(p, f.Args)
		if err != nil {
			return nil, err
		}
		got, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Name: f.Name, Arguments: values})
		if err != nil {
			return nil, fmt.Errorf("get its prompt %s: %w", f.Name, err)
		}
		for _, m := range got.Messages {
			contents = append(contents, m.Content)
		}
		return contents, nil
	}
	return nil, fmt.Errorf("it has no prompt %s; it has: %s", f.Name, strings.Join(names, ", "))
}

// promptArguments assigns words to the arguments of a prompt in their order; the last gets the rest.
func promptArguments(p *sdk.Prompt, args string) (map[string]string, error) {
	values := make(map[string]string)
	rest := strings.TrimSpace(args)
	for i, a := range p.Arguments {
		value := rest
		if i < len(p.Arguments)-1 {
			value, rest, _ = strings.Cut(rest, " ")
			rest = strings.TrimSpace(rest)
		}
		if value != "" {
			values[a.Name] = value
		} else if a.Required {
			return nil, fmt.Errorf("its prompt %s needs the argument %s", p.Name, words(a.Name, a.Description))
		}
	}
	return values, nil
}

func (f Offer) resource(ctx context.Context, cs *sdk.ClientSession) (contents []sdk.Content, err error) {
	got, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{URI: f.Name})
	if err != nil {
		return nil, fmt.Errorf("read its resource %s: %w", f.Name, err)
	}
	for _, r := range got.Contents {
		contents = append(contents, &sdk.EmbeddedResource{Resource: r})
	}
	return contents, nil
}

// contentText returns a server's content as model and user see it. Bytes are named only.
func contentText(c sdk.Content) string {
	b := resultBuilder{secrets: (&tool.Env{}).Redaction()}
	b.content(c)
	text, _ := headAndTail(tool.Visible(strings.Join(b.lines, "\n")), MaxResultRunes)
	return text
}
