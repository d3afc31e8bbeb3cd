package tokens

import "strings"

// Fallback is the encoding used for models whose own tokenizer is not public
// or not among Encodings. Counts are then estimates, usually within 20%.
const Fallback = "o200k_base"

// forRecordings is the encoding used for script models ("script:FILE"), whose texts
// are recordings of any origin. It is the smallest vocabulary: loading Fallback takes
// several times as long, and most of the time that a short recording runs.
const forRecordings = "r50k_base"

// family maps the beginnings of model names to the encoding they really use.
type family struct{ prefix, encoding string }

// families is our own table, since the tokenizer library's ends at gpt-4.5.
// The longest prefix wins.
func families() []family {
	return []family{
		{"gpt-5", "o200k_base"}, {"gpt-4.5", "o200k_base"}, {"gpt-4.1", "o200k_base"}, {"gpt-4o", "o200k_base"},
		{"chatgpt-4o", "o200k_base"}, {"gpt-oss", "o200k_base"}, {"codex-mini", "o200k_base"},
		{"o1", "o200k_base"}, {"o3", "o200k_base"}, {"o4", "o200k_base"},
		{"gpt-4", "cl100k_base"}, {"gpt-3.5", "cl100k_base"}, {"gpt-35", "cl100k_base"},
		{"text-embedding-3", "cl100k_base"}, {"text-embedding-ada-002", "cl100k_base"},
		{"text-davinci-003", "p50k_base"}, {"text-davinci-002", "p50k_base"}, {"code-davinci", "p50k_base"},
		{"davinci", "r50k_base"}, {"curie", "r50k_base"}, {"babbage", "r50k_base"}, {"gpt2", "r50k_base"},
	}
}

// EncodingFor returns the encoding to count a model's tokens in: the model's
// own where it is known, else Fallback. Provider prefixes ("openai/gpt-4o")
// and letter case do not matter.
func EncodingFor(model string) string {
	enc, _ := lookup(model)
	return enc
}

// Exact reports whether EncodingFor returns the model's own encoding. If not, counts
// are estimates.
func Exact(model string) bool {
	_, ok := lookup(model)
	return ok
}

func lookup(model string) (encoding string, ok bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	if strings.HasPrefix(name, "script:") {
		return forRecordings, false
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	best := family{"", Fallback}
	for _, f := range families() {
		if len(f.prefix) > len(best.prefix) && hasPrefix(name, f.prefix) {
			best = f
		}
	}
	return best.encoding, best.prefix != ""
}

// hasPrefix is strings.HasPrefix for families: "o1" is the beginning of
// "o1-mini" and not of "o1000".
func hasPrefix(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || rest == "" {
		return ok
	}
	ends := prefix[len(prefix)-1] >= '0' && prefix[len(prefix)-1] <= '9'
	return !ends || rest[0] < '0' || rest[0] > '9'
}
