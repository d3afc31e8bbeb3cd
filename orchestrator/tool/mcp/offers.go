package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/orchestrator/tool"
)

// Prompt starts or reaches a server as Probe does and returns the text of one of its prompts. The
// words of args are its arguments in their order, the last gets the rest.
func Prompt(ctx context.Context, s Server, o Options, name, args string) (text string, err error) {
	err = s.during(ctx, o, func(ctx context.Context, cs *sdk.ClientSession) error {
		var names []string
		for p, err := range cs.Prompts(ctx, nil) {
			switch {
			case err != nil:
				return fmt.Errorf("list its prompts: %w", err)
			case p.Name == name:
				values, err := promptArguments(p, args)
				if err != nil {
					return err
				}
				got, err := cs.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: values})
				if err != nil {
					return fmt.Errorf("get its prompt %s: %w", name, err)
				}
				for _, m := range got.Messages {
					text += contentText(m.Content) + "\n"
				}
				return nil
			case len(names) == maxTools:
				return fmt.Errorf("it offers more than %d prompts", maxTools)
			}
			names = append(names, oneLine(p.Name))
		}
		return fmt.Errorf("it has no prompt %s; it has: %s", name, strings.Join(names, ", "))
	})
	return strings.TrimSpace(text), err
}

// promptArguments assigns words to the arguments of a prompt.
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

// Resource starts or reaches a server as Probe does and returns one of its resources as text. Other
// content than text is named.
func Resource(ctx context.Context, s Server, o Options, uri string) (text string, err error) {
	err = s.during(ctx, o, func(ctx context.Context, cs *sdk.ClientSession) error {
		got, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			return fmt.Errorf("read its resource %s: %w", uri, err)
		}
		for _, r := range got.Contents {
			text += contentText(&sdk.EmbeddedResource{Resource: r}) + "\n"
		}
		return nil
	})
	return strings.TrimSpace(text), err
}

// contentText returns a server's content as model and user see it. Bytes are named only.
func contentText(c sdk.Content) string {
	b := resultBuilder{secrets: (&tool.Env{}).Redaction()}
	b.content(c)
	text, _ := headAndTail(tool.Visible(strings.Join(b.lines, "\n")), MaxResultRunes)
	return text
}

// during runs one exchange with a server, within its start timeout.
func (s Server) during(ctx context.Context, o Options, exchange func(context.Context, *sdk.ClientSession) error) error {
	o = o.withDefaults()
	ses, err := connect(ctx, s, &o, events{changed: func() {}, progress: func(any, string) {}})
	if err != nil {
		return err
	}
	defer ses.end()
	ctx, cancel := context.WithTimeoutCause(ctx, s.startTimeout(), errSlow)
	defer cancel()
	err = exchange(ctx, ses.cs)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return err
}
