package research

import (
	"strings"

	"anamnesis/anamnesis/shell"
)

// modelName matches names of language models: a family and what distinguishes its members.
var modelName = shell.Pattern(`(?i)^(?:[a-z0-9_.-]+/)*(?:(?:gpt|chatgpt|claude|gemini|gemma|llama|codellama|qwen|qwq|` +
	`deepseek|mistral|mixtral|magistral|codestral|devstral|grok|kimi|glm|minimax|command-r|phi|nova|jamba|yi)` +
	`[-_.:]?[a-z0-9][a-z0-9._:-]*|o[1-9](?:-[a-z0-9-]+)?)$`)

// modelField matches the value of a field for a model's name, in quotes, or without them as in
// YAML and in a list of variables. An unquoted one has a hyphen: without it, it could be a
// program's identifier.
var modelField = shell.Pattern(`(?i)(?:\b|_)model(?:[_-]?(?:name|id))?["']?\s*[:=]\s*` +
	`(?:["']([A-Za-z0-9._:/-]+)["']|([A-Za-z][A-Za-z0-9._:/]*-[A-Za-z0-9._:/-]+))`)

// maxModelText is how much of a text is searched for models.
const maxModelText = 256 << 10

// models finds the models a command names, in options, in variables, and in what it sends.
func (f *finder) models(s shell.Simple) {
	for _, a := range s.Assigns {
		if strings.HasSuffix(strings.ToUpper(a.Name), "MODEL") {
			f.model(a.Value.Text)
		}
	}
	named := false
	for _, w := range s.Args() {
		if named {
			f.model(w.Text)
		}
		named = w.Text == "--model" || w.Text == "--model-name"
		if value, ok := strings.CutPrefix(w.Text, "--model="); ok {
			f.model(value)
		}
		f.modelsIn(w.Text, "")
	}
	for _, r := range s.Redirects {
		if strings.HasPrefix(r.Op, "<<") {
			f.modelsIn(r.File.Text, "")
		}
	}
}

// modelsIn finds the models that a text sets and that before did not name.
func (f *finder) modelsIn(text, before string) {
	text = text[:min(len(text), maxModelText)]
	for _, m := range modelField().FindAllStringSubmatch(text, -1) {
		name := m[1] + strings.TrimRight(m[2], ".:")
		if !strings.Contains(before, name) {
			f.model(name)
		}
	}
}

func (f *finder) model(name string) {
	if !modelName().MatchString(name) || f.rules.KnownModel != nil && f.rules.KnownModel(name) {
		return
	}
	f.add(Subject{Kind: Model, ID: "model:" + name})
}
