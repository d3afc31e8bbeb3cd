package projection

import (
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

const (
	// MaxImageBytes bounds the images in one context, as base64. A result whose images
	// do not fit any more is shown without them; its text still names them.
	MaxImageBytes = 16 << 20
	// imageTokens is the size that an image counts with. Providers count 85 to about
	// 1,600, by its size,
	// https://platform.openai.com/docs/guides/images-vision#calculating-costs
	imageTokens = 1_000
)

// images returns the parts of a result that a model can look at.
func images(b *op.ToolReturned) (parts []op.Part, size int) {
	for _, p := range b.Parts {
		if p.Kind == op.PartImage {
			parts = append(parts, p)
			size += len(p.Base64)
		}
	}
	return parts, size
}

// look puts a result's images into its message, while there is room for them.
func (p *Context) look(m *model.Message, b *op.ToolReturned) {
	parts, size := images(b)
	if size == 0 || p.images+size > MaxImageBytes {
		return
	}
	m.Parts = parts
	p.images += size
}

// unlook takes the images out of a message.
func (p *Context) unlook(m *model.Message) {
	for _, part := range m.Parts {
		p.images -= len(part.Base64)
	}
	m.Parts = nil
}

// CountBody returns the tokens of an operation's unmasked projection. Count counts
// those of a text.
func CountBody(b op.Body, count func(text string) int) int {
	n := count(op.ProjectedText(b))
	if r, ok := b.(*op.ToolReturned); ok {
		parts, _ := images(r)
		n += imageTokens * len(parts)
	}
	return n
}
