package projection

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

const (
	// MaxImageBytes limits the images in one context, as base64. A result whose images exceed
	// it is shown without them; its text still names them.
	MaxImageBytes = 16 << 20
	// imageTokens is the counted size of an image. Providers count 85 to about 1,600 tokens,
	// depending on its size,
	// https://platform.openai.com/docs/guides/images-vision#calculating-costs
	imageTokens = 1_000
)

// images returns the parts of a result that are images, and their size.
func images(b *op.ToolReturned) (parts []op.Part, size int) {
	for _, p := range b.Parts {
		if p.Kind == op.PartImage {
			parts = append(parts, p)
			size += len(p.Base64)
		}
	}
	return parts, size
}

// attachImages adds a result's images to its message while they fit.
func (p *Context) attachImages(m *model.Message, b *op.ToolReturned) {
	parts, size := images(b)
	if size == 0 || p.images+size > MaxImageBytes {
		return
	}
	m.Parts = parts
	p.images += size
}

// unlook removes the images from a message.
func (p *Context) unlook(m *model.Message) {
	for _, part := range m.Parts {
		p.images -= len(part.Base64)
	}
	m.Parts = nil
}

// CountBody returns the tokens of an operation's unmasked projection. count counts those of a
// text. What a provider put beside a reply is sent again with it, and counts.
func CountBody(b op.Body, count func(text string) int) int {
	n := count(op.ProjectedText(b))
	switch b := b.(type) {
	case *op.ToolReturned:
		parts, _ := images(b)
		n += imageTokens * len(parts)
	case *op.ModelReplied:
		if data := extraOf(b); data != "" {
			n += count(data)
		}
	}
	return n
}

// extraOf returns what is sent of a reply beside its text and the calls.
func extraOf(b *op.ModelReplied) string {
	var out strings.Builder
	add := func(extra map[string]json.RawMessage) {
		for _, key := range slices.Sorted(maps.Keys(extra)) {
			out.WriteString(key + " " + string(extra[key]) + "\n")
		}
	}
	add(b.Extra)
	for _, c := range b.Calls {
		add(c.Extra)
	}
	return out.String()
}
