package openai

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	gopenai "github.com/sashabaranov/go-openai"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

type Images string

// When images are sent.
const (
	ImagesAuto  Images = ""      // if the model is known to take them
	ImagesSend  Images = "send"  // always
	ImagesNever Images = "never" // the result's text has to suffice
)

// seeing matches the names of model families that take images. An endpoint refuses a whole
// request over an image its model does not take, so a family is listed only if its makers
// document it: https://platform.openai.com/docs/models,
// https://docs.claude.com/en/docs/about-claude/models/overview,
// https://ai.google.dev/gemini-api/docs/models,
// https://docs.mistral.ai/getting-started/models/models_overview/,
// https://ollama.com/search?c=vision
const seeing = `^(gpt-4o|gpt-4\.1|gpt-4-turbo|gpt-5|gpt-6|o1($|-20)|o3($|-20|-pro)|o4-mini|chatgpt-4o|claude-|` +
	`gemini-|gemma-?3|pixtral|mistral-(small|medium)-3|llama-?(3\.2-vision|4)|llava|bakllava|minicpm-v|` +
	`qwen[0-9.]*-?vl|qwen3\.5|moondream|internvl|glm-4\.[0-9]v|kimi-k2\.5|kimi-vl|grok-4)`

// sees reports whether this model receives images.
func (c *Client) sees() bool {
	c.mu.Lock()
	blind := c.mends.blind
	c.mu.Unlock()
	if blind {
		return false
	}
	switch c.o.Images {
	case ImagesSend:
		return true
	case ImagesNever:
		return false
	}
	name := strings.ToLower(c.o.Model[strings.LastIndexByte(c.o.Model, '/')+1:])
	return regexp.MustCompile(seeing).MatchString(name)
}

// unseen is what a model that takes no images gets in their place.
const unseen = "\n[This model takes no images, or its endpoint refused them: only the text above is known.]"

// gallery collects the images of tool results and of the user's words. Tool messages can hold text
// only, so the images follow all the results of a reply, in a user message that names their
// origin, or before the user's words.
type gallery struct {
	parts []gopenai.ChatMessagePart
}

func (g *gallery) add(m *model.Message) {
	origin := "from the user"
	if m.Role == model.RoleTool {
		origin = fmt.Sprintf("in the result of %s, call %s", m.Name, m.CallID)
	}
	for i, p := range m.Parts {
		if p.Kind != op.PartImage {
			continue
		}
		text := fmt.Sprintf("[image %d of %d %s]", i+1, len(m.Parts), origin)
		url := "data:" + p.MIME + ";base64," + base64.StdEncoding.EncodeToString(p.Base64)
		g.parts = append(g.parts,
			gopenai.ChatMessagePart{Type: gopenai.ChatMessagePartTypeText, Text: text},
			gopenai.ChatMessagePart{Type: gopenai.ChatMessagePartTypeImageURL,
				ImageURL: &gopenai.ChatMessageImageURL{URL: url}})
	}
}

// show returns the message with the images and the words that follow them, and empties the
// gallery. ok is false if there are none.
func (g *gallery) show(words string) (m gopenai.ChatCompletionMessage, ok bool) {
	if len(g.parts) == 0 {
		return m, false
	}
	m = gopenai.ChatCompletionMessage{Role: gopenai.ChatMessageRoleUser, MultiContent: g.parts}
	if words != "" {
		m.MultiContent = append(m.MultiContent,
			gopenai.ChatMessagePart{Type: gopenai.ChatMessagePartTypeText, Text: words})
	}
	g.parts = nil
	return m, true
}
