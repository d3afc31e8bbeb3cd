package openai

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// mends are what an endpoint's refusals have shown of how it wants a request written. Endpoints differ,
// also for one model: Groq and Cerebras refuse reasoning that they sent, DeepSeek, Kimi and Gemini refuse
// a history without it, even for replies that another model gave.
type mends struct {
	omit     map[string]bool // fields that it sends and does not take back
	fill     map[string]bool // fields that every reply in the history must have
	sign     bool            // every call must have a thought signature
	without  map[string]bool // fields of the request that it does not take
	leftOut  map[string]bool // tools that it does not take
	shortIDs bool            // ids of calls must be nine letters and digits
	merge    bool            // messages of one role must not follow each other
	oneStart bool            // only the first message may have the role system
	words    bool            // no message may be without words
	blind    bool            // it takes no images
	// renamed is the name of the cap on the reply that the endpoint asked for.
	renamed string
}

const (
	// filler stands for the reasoning of a reply that has none. Some endpoints count an empty one as
	// missing.
	filler = " "
	// unsigned is Gemini's own word for a call that another model made,
	// https://ai.google.dev/gemini-api/docs/thought-signatures
	unsigned  = "skip_thought_signature_validator"
	signature = "thought_signature"
)

// unwantedSigns are words for something that a request may not have.
const unwantedSigns = `(?i)\bun(supported|recogni[sz]ed|known|expected)\b|not (supported|permitted|allowed)|` +
	`forbidden|additional propert`

// missing matches a refusal because of what a request lacks, unwanted one because of what it has.
var (
	missing = shell.Pattern(`(?i)\bmissing|must be (passed|provided|included|present)|\brequire[ds]?\b|` +
		`must (have|include|contain|provide)`)
	unwanted = shell.Pattern(unwantedSigns)
)

// learn returns the repair's name if a refusal of a request says how to write it instead, and this was
// not known.
func (c *Client) learn(err error, r model.Request, w *written) string {
	f, ok := errors.AsType[*model.Fault](err)
	if !ok || f.Kind != model.FaultHTTP && f.Kind != model.FaultRefused {
		return ""
	}
	switch f.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError,
		http.StatusNotImplemented:
	default:
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	says := f.Err.Error() // which may quote the field itself
	if way := c.learnField(says, w); way != "" {
		return way
	}
	if f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity {
		if field := c.learnHistory(says, r); field != "" {
			return op.RepairHistory + ":" + field
		}
	}
	for _, form := range forms() {
		if known := form.set(&c.mends); !*known && form.sign.MatchString(says) {
			*known = true
			return op.RepairHistory + ":" + form.name
		}
	}
	return ""
}

// A rule of writing that an endpoint's refusal names.
type form struct {
	name string
	set  func(*mends) *bool
	sign *regexp.Regexp
}

// forms are ordered: the first that matches and is not known is learned. The phrases are those of the
// servers' chat templates and of the APIs named.
func forms() []form {
	return []form{
		{"call ids of nine characters", func(m *mends) *bool { return &m.shortIDs }, // Mistral, OpenAI
			regexp.MustCompile(`(?i)tool.?call.?id.*(length of 9|a-z, A-Z, 0-9|maximum length|too long|pattern)|` +
				`tool_calls\[\d+\]\.id`)},
		{"messages of one role merged", func(m *mends) *bool { return &m.merge }, // templates of Gemma, Mistral
			regexp.MustCompile(`(?i)roles must alternate|alternate (between )?user|consecutive (user|assistant)|` +
				`multiple consecutive`)},
		{"one system message", func(m *mends) *bool { return &m.oneStart }, // templates of Qwen, MiniMax
			regexp.MustCompile(`(?i)system (message|role|prompt).{0,40}(first|beginning|start|only)|` +
				`only .{0,20}system|unexpected role .?system|role 'system'`)},
		{"no images", func(m *mends) *bool { return &m.blind },
			regexp.MustCompile(`(?i)image.{0,60}(not supported|unsupported|not support|cannot|only text)|` +
				`(not|n't) (support|accept) (image|vision|multimodal)|unknown variant .?image_url|` +
				`no endpoints found that support image|does not support .{0,20}image|not a multimodal|` +
				`(could not|unable to|failed to|cannot) (process|decode|load|read|parse) (the )?(input )?image|` +
				`(invalid|corrupt\w*|malformed|unsupported) (base64 )?image|` +
				`image.{0,60}(exceeds|too large|too many|invalid|does not represent)`)},
		{"no message without words", func(m *mends) *bool { return &m.words },
			regexp.MustCompile(`(?i)content.{0,60}(must not be (null|empty|none|blank)|non-?empty|is empty|be empty|` +
				`cannot be (null|empty)|should be a valid string|expected a string|must be a string|none is not)|` +
				`must have either content|text content blocks must|empty (message|content)`)},
	}
}

// learnField learns a field of the request or a tool that an endpoint refuses.
func (c *Client) learnField(says string, w *written) string {
	for _, t := range w.Tools {
		name := t.Function.Name
		named := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(name) + `($|[^\w-])`)
		if !strings.Contains(says, "messages") && !c.mends.leftOut[name] &&
			named.MatchString(says) && toolRefused().MatchString(says) {
			return op.RepairToolLeftOut + ":" + setIn(&c.mends.leftOut, name)
		}
	}
	// The index, as in tools[3].function.parameters, counts what was sent: tools left out before are not in w.
	if at := toolIndex().FindStringSubmatch(says); at != nil {
		if i, err := strconv.Atoi(at[1] + at[2]); err == nil && i < len(w.Tools) {
			return op.RepairToolLeftOut + ":" + setIn(&c.mends.leftOut, w.Tools[i].Function.Name)
		}
	}
	switch {
	// Such a refusal names both fields, the refused one and the one that the endpoint takes: that is the one not sent.
	case c.mends.renamed == "" && strings.Contains(says, "max_tokens") &&
		strings.Contains(says, "max_completion_tokens"):
		if c.mends.renamed = "max_tokens"; capName(c.o.Model) == "max_tokens" {
			c.mends.renamed = "max_completion_tokens"
		}
		return op.RepairWithout + ":" + capName(c.o.Model)
	case streamRefused().MatchString(says) && !c.mends.without["stream"]:
		return op.RepairWithout + ":" + setIn(&c.mends.without, "stream")
	}
	if fieldRefused().MatchString(says) {
		for _, key := range w.fields {
			if !c.mends.without[key] && regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(key)+`($|\W)`).MatchString(says) {
				return op.RepairWithout + ":" + setIn(&c.mends.without, key)
			}
		}
	}
	return ""
}

var (
	toolRefused = shell.Pattern(`(?i)schema|parameters|function.?declaration|` +
		`(invalid|unsupported|bad) (tool|function)|(tool|function).{0,60}(invalid|unsupported|not supported)`)
	toolIndex     = shell.Pattern(`\btools(?:\[(\d+)\]|\.(\d+)\b)`)
	streamRefused = shell.Pattern(`(?i)stream(ing)?\b.{0,40}(not|n't|un)\s?(yet )?(be )?(supported|support|allowed|` +
		`available|possible)|(not|n't) support.{0,20}\bstreaming`)
	fieldRefused = shell.Pattern(unwantedSigns + `|not (support|accept|implemented)|n't (support|accept|allow)|` +
		`extra (inputs|fields)|invalid|too (large|big|high|many)|exceed|must be|at most|less than|out of range`)
)

func setIn(set *map[string]bool, name string) string {
	if *set == nil {
		*set = make(map[string]bool)
	}
	(*set)[name] = true
	return name
}

// learnHistory learns which field beside the replies of the history an endpoint misses or refuses, and
// returns it.
func (c *Client) learnHistory(says string, r model.Request) string {
	lacks := missing().MatchString(says) && !unwanted().MatchString(says)
	if lacks && strings.Contains(says, signature) {
		known := c.mends.sign
		if c.mends.sign = true; known {
			return ""
		}
		return signature
	}
	// Whether the history may lack a field, or have it.
	fields := map[string]bool{"reasoning_content": lacks, "reasoning": lacks, "name": !lacks}
	for _, m := range r.Messages {
		if m.Origin != c.origin() {
			continue
		}
		for key := range m.Extra {
			fields[key] = true
		}
		for _, call := range m.Calls {
			for key := range call.Extra {
				fields[key] = !lacks
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		set := &c.mends.omit
		if lacks {
			set = &c.mends.fill
		}
		named := regexp.MustCompile(`\b` + regexp.QuoteMeta(key) + `\b`)
		if fields[key] && !(*set)[key] && !(lacks && key == "content") && named.MatchString(says) {
			return setIn(set, key)
		}
	}
	return ""
}

// mend writes the messages of a request as the endpoint wants them.
func (c *Client) mend(messages []map[string]any) []map[string]any {
	out := messages[:0]
	for _, m := range messages {
		if m["role"] == string(model.RoleAssistant) {
			c.mendReply(m)
		}
		if c.mends.omit["name"] {
			delete(m, "name")
		}
		if c.mends.oneStart && len(out) > 0 && m["role"] == string(model.RoleSystem) {
			m["role"] = string(model.RoleUser)
		}
		if s, ok := m["content"].(string); c.mends.words && (m["content"] == nil || ok && strings.TrimSpace(s) == "") {
			m["content"] = "(no text)"
		}
		if id, ok := m["tool_call_id"].(string); ok && c.mends.shortIDs {
			m["tool_call_id"] = shortID(id)
		}
		if c.mends.merge && len(out) > 0 && mergeInto(out[len(out)-1], m) {
			continue
		}
		out = append(out, m)
	}
	return out
}

// mergeInto joins two messages of one role that are only text.
func mergeInto(last, m map[string]any) bool {
	before, ok := last["content"].(string)
	text, also := m["content"].(string)
	plain := ok && also && last["tool_calls"] == nil && m["tool_calls"] == nil
	if !plain || last["role"] != m["role"] || m["role"] == string(model.RoleTool) {
		return false
	}
	last["content"] = strings.TrimSpace(before + "\n\n" + text)
	return true
}

// shortID is an id of nine letters and digits, the same for the same id.
func shortID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:9])
}

func (c *Client) mendReply(m map[string]any) {
	for key := range c.mends.fill {
		if raw, ok := m[key].(json.RawMessage); !ok || !present(raw) {
			m[key] = filler
		}
	}
	for _, call := range callsOf(m) {
		if id, ok := call["id"].(string); ok && c.mends.shortIDs {
			call["id"] = shortID(id)
		}
		raw, _ := call["extra_content"].(json.RawMessage)
		outer := objectOf(raw)
		google := objectOf(outer["google"])
		if !c.mends.sign || stringOf(google[signature]) != "" {
			continue
		}
		call["extra_content"] = map[string]any{"google": map[string]any{signature: unsigned}}
	}
}
