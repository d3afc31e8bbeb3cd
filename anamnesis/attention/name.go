package attention

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// dated matches the end by which providers name a snapshot: a date as
	// 2024-08-06, 20240806, 06-05, 01-29-2025 or 08-2024, a month and day as 0709, a
	// year and month as 2507, or "latest"; after it, Bedrock's version and revision.
	dated = regexp.MustCompile(`[-@](?:20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])` +
		`|(?:0[1-9]|1[0-2])-(?:(?:0[1-9]|[12]\d|3[01])-)?20\d\d` +
		`|(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])|2\d(?:0[1-9]|1[0-2])|latest)(?:-v\d+)?$`)
	// vendor matches a prefix such as "us.anthropic.": words that end in a
	// dot before a letter. In "gpt-4.1" none does.
	vendor = regexp.MustCompile(`^(?:[a-z]+\.)+([a-z])`)
)

// nameForms lists the forms under which a model name is looked up, the name
// itself first.
func nameForms(model string) []string {
	name := strings.ToLower(strings.TrimSpace(model))
	forms := []string{name}
	add := func(form string) {
		if form != "" && !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	// Each round works on the forms of the one before.
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		add(name[i+1:])
	}
	for _, f := range slices.Clone(forms) {
		add(vendor.ReplaceAllString(f, "$1"))
	}
	for _, f := range slices.Clone(forms) {
		if base, tag, ok := strings.Cut(f, ":"); ok {
			add(base)
			// A tag is the provider's own, such as :free, or a size, which others write behind a dash: qwen3-235b.
			add(base + "-" + tag)
		}
	}
	for _, f := range slices.Clone(forms) {
		add(dated.ReplaceAllString(f, ""))
	}
	return forms
}
