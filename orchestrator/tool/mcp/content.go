package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/picture"
	"anamnesis/orchestrator/tool"
)

// Limits of a result.
const (
	MaxResultRunes = 100_000 // characters of text; head and tail are kept
	MaxParts       = 8       // images, sounds and files
	MaxPartBytes   = 5 << 20 // of each
)

// result converts a server's result: texts unchanged, other content named in its place and, if
// small enough, kept as a part. Secrets are replaced before anything is cut.
func result(r *sdk.CallToolResult, secrets *tool.Redaction) tool.Result {
	b := resultBuilder{secrets: secrets}
	for _, c := range r.Content {
		b.content(c)
	}
	if len(r.Content) == 0 && r.StructuredContent != nil {
		if data, err := json.Marshal(r.StructuredContent); err == nil {
			b.line(string(data))
		}
	}
	text, cut := headAndTail(secrets.Text(cmp.Or(strings.Join(b.lines, "\n"), "[no output]")), MaxResultRunes)
	return tool.Result{
		Text: text, IsError: r.IsError, Cut: cut, Network: true, Parts: b.parts, Secrets: secrets.Found(),
	}
}

type resultBuilder struct {
	secrets *tool.Redaction
	lines   []string
	parts   []op.Part
}

func (b *resultBuilder) line(s string) { b.lines = append(b.lines, s) }

func (b *resultBuilder) content(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		b.line(strings.ToValidUTF8(c.Text, "\uFFFD"))
	case *sdk.ImageContent:
		b.part(op.PartImage, c.MIMEType, "", c.Data)
	case *sdk.AudioContent:
		b.part(op.PartAudio, c.MIMEType, "", c.Data)
	case *sdk.ResourceLink:
		b.line("[resource link: " + words(c.Name, c.URI, c.MIMEType, c.Description) + "]")
	case *sdk.EmbeddedResource:
		b.resource(c.Resource)
	default:
		b.line(fmt.Sprintf("[content of the kind %T is not shown]", c))
	}
}

func (b *resultBuilder) resource(r *sdk.ResourceContents) {
	switch {
	case r == nil:
		b.line("[a resource without content]")
	case r.Blob == nil:
		b.line("[resource " + words(r.URI, r.MIMEType) + "]\n" + strings.ToValidUTF8(r.Text, "\uFFFD"))
	case strings.HasPrefix(r.MIMEType, "image/"):
		b.part(op.PartImage, r.MIMEType, r.URI, r.Blob)
	case strings.HasPrefix(r.MIMEType, "audio/"):
		b.part(op.PartAudio, r.MIMEType, r.URI, r.Blob)
	default:
		b.part(op.PartBlob, r.MIMEType, r.URI, b.withoutSecrets(r.MIMEType, r.Blob))
	}
}

// withoutSecrets returns a file's bytes with secrets of a text replaced. A text is declared as
// one, or is UTF-8.
func (b *resultBuilder) withoutSecrets(mimeType string, data []byte) []byte {
	if len(data) > MaxPartBytes || !strings.HasPrefix(strings.ToLower(mimeType), "text/") && !utf8.Valid(data) {
		return data
	}
	return []byte(b.secrets.Text(string(data)))
}

// part keeps bytes that are not text. The bytes decide whether it is an image, and one that a
// provider would refuse is not kept as an image.
func (b *resultBuilder) part(kind op.PartKind, mimeType, name string, data []byte) {
	known, _, _ := mime.ParseMediaType(mimeType)
	p := op.Part{Kind: kind, Name: oneLine(name), Base64: data, MIME: cmp.Or(known, "application/octet-stream")}
	what := fmt.Sprintf("%s, %d bytes", words(p.MIME, name), len(data))
	if kind == op.PartImage {
		fit, description, err := picture.Fit(data)
		switch {
		case err == nil:
			fit.Name = p.Name
			p, what = fit, words(name, description)
		case picture.Format(data) == "" && len(data) > 0: // such as SVG
			p.Kind = op.PartBlob
			what += "; no PNG, JPEG, WebP or GIF"
		default:
			b.line(fmt.Sprintf("[image: %s; not kept: %s]", what, oneLine(err.Error())))
			return
		}
	}
	switch {
	case len(data) == 0:
		b.line(fmt.Sprintf("[%s: %s]", kind, what))
	case len(p.Base64) > MaxPartBytes:
		b.line(fmt.Sprintf("[%s: %s; not kept, at most %d are]", kind, what, MaxPartBytes))
	case len(b.parts) == MaxParts:
		b.line(fmt.Sprintf("[%s: %s; not kept, at most %d are in one result]", kind, what, MaxParts))
	default:
		b.parts = append(b.parts, p)
		b.line(fmt.Sprintf("[%s %d: %s]", p.Kind, len(b.parts), what))
	}
}

// words joins non-empty parts, each on one line and visible.
func words(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p = oneLine(p); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}

// maxWordBytes bounds a name or an address from a server.
const maxWordBytes = 300

func oneLine(s string) string { return quote.OneLine(tool.Visible(s), maxWordBytes) }

// headAndTail shortens a text to n characters, and describes in its middle what is omitted.
// cut counts the bytes.
func headAndTail(s string, n int) (text string, cut int64) {
	runes := []rune(s)
	if len(runes) <= n {
		return s, 0
	}
	head, tail := string(runes[:n/2]), string(runes[len(runes)-(n-n/2):])
	omitted := len(s) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[… %d bytes of the result cut here …]\n%s", head, omitted, tail), int64(omitted)
}
