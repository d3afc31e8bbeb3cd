package projection

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// MaxImageBytes limits the images in one context, as base64. A message whose images exceed it is
// shown without them; its text still names them.
const MaxImageBytes = 16 << 20

const imagesLeftOut = "\n[The images are left out: those of one context would exceed 16 MiB.]"

// images returns the images of an operation, and their size.
func images(b op.Body) (parts []op.Part, size int) {
	var all []op.Part
	switch b := b.(type) {
	case *op.ToolReturned:
		all = b.Parts
	case *op.UserSaid:
		all = b.Parts
	}
	for _, p := range all {
		if p.Kind == op.PartImage {
			parts = append(parts, p)
			size += len(p.Base64)
		}
	}
	return parts, size
}

// attachImages adds an operation's images to its message while they fit.
func (p *Context) attachImages(m *model.Message, b op.Body) {
	parts, size := images(b)
	switch {
	case size == 0:
	case p.images+size > MaxImageBytes:
		m.Text += imagesLeftOut
	default:
		m.Parts = parts
		p.images += size
	}
}

// unlook removes the images from a message.
func (p *Context) unlook(m *model.Message) {
	for _, part := range m.Parts {
		p.images -= len(part.Base64)
	}
	m.Parts = nil
}

// keepImages moves the images of a removed message to the entry that replaces it.
func (p *Context) keepImages(to *Entry, parts []op.Part) {
	to.Msg.Parts = slices.Concat(to.Msg.Parts, parts)
	for _, part := range parts {
		n := imageTokens(part.Width, part.Height)
		to.Tok += n
		p.Tokens += n
	}
}

// CountBody returns the tokens of an operation's unmasked projection. count counts those of
// a text. What a provider put beside a reply is sent again with it, and counts.
func CountBody(b op.Body, count func(text string) int) int {
	n := count(op.ProjectedText(b))
	parts, _ := images(b)
	for _, p := range parts {
		n += imageTokens(p.Width, p.Height)
	}
	if b, ok := b.(*op.ModelReplied); ok {
		if data := extraOf(b); data != "" {
			n += count(data)
		}
	}
	return n
}

// imageTokens returns the tokens of an image by the patches of 28 pixels of Qwen-VL,
// https://huggingface.co/Qwen/Qwen2-VL-7B-Instruct, which is close to Claude's formula of 750 pixels a token.
// Others count fewer for most images.
func imageTokens(w, h int) int {
	if w <= 0 || h <= 0 {
		return 1_000 // of images of earlier versions, whose size was not recorded
	}
	return ((w + 27) / 28) * ((h + 27) / 28)
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
