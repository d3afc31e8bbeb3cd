package projection

import (
	"encoding/json"
	"maps"
	"math"
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
		n := imageTokens("", part.Width, part.Height)
		to.Tok += n
		p.Tokens += n
	}
}

// CountBody returns the tokens of an operation's unmasked projection for a model. count counts
// those of a text. What a provider put beside a reply is sent again with it, and counts.
func CountBody(b op.Body, model string, count func(text string) int) int {
	n := count(op.ProjectedText(b))
	parts, _ := images(b)
	for _, p := range parts {
		n += imageTokens(model, p.Width, p.Height)
	}
	if b, ok := b.(*op.ModelReplied); ok {
		if data := extraOf(b); data != "" {
			n += count(data)
		}
	}
	return n
}

// imageTokens returns the tokens of an image by the formula that the model's makers document:
// https://platform.claude.com/docs/en/build-with-claude/vision,
// https://ai.google.dev/gemini-api/docs/tokens,
// https://platform.openai.com/docs/guides/images-vision#calculating-costs and, for other models,
// the patches of 28 pixels of Qwen-VL, https://huggingface.co/Qwen/Qwen2-VL-7B-Instruct.
func imageTokens(model string, w, h int) int {
	const unknown = 1_000 // of images of earlier versions, whose size was not recorded
	if w <= 0 || h <= 0 {
		return unknown
	}
	fw, fh := float64(w), float64(h)
	cells := func(side float64) float64 { return math.Ceil(fw/side) * math.Ceil(fh/side) }
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	patches := func(factor float64) int { return int(math.Ceil(min(cells(32), 1_536) * factor)) }
	tiles := func(base, tile float64) int {
		fit := min(1, 2_048/max(fw, fh))
		fit *= min(1, 768/(min(fw, fh)*fit))
		fw, fh = math.Round(fw*fit), math.Round(fh*fit)
		return int(base + tile*cells(512))
	}
	switch {
	case has("claude-"):
		fit := min(1, 1_568/max(fw, fh))
		return int(min(math.Ceil(fw*fit*fh*fit/750), 1_600))
	case has("gemini-", "gemma"):
		if w <= 384 && h <= 384 {
			return 258
		}
		return int(258 * cells(768))
	case has("gpt-4.1-mini", "gpt-5-mini"):
		return patches(1.62)
	case has("gpt-4.1-nano", "gpt-5-nano"):
		return patches(2.46)
	case has("o4-mini"):
		return patches(1.72)
	case has("gpt-4o-mini"):
		return tiles(2_833, 5_667)
	case has("gpt-5"):
		return tiles(70, 140)
	case has("o1", "o3"):
		return tiles(75, 150)
	case has("gpt-", "chatgpt-"):
		return tiles(85, 170)
	}
	return int(cells(28))
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
