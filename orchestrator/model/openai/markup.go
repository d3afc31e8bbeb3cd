package openai

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// A server without the right parser for its model leaves the model's own markup in the text: thinking
// between tags, and calls in the form of the model's training. The forms are those of the models' chat
// templates: Hermes and Qwen (<tool_call>), Qwen3-Coder and Llama (<function=…>), GLM (<arg_key>), MiniMax
// (<invoke name=…>), gpt-oss (<|channel|>), Kimi (<|tool_call_begin|>), DeepSeek (<｜tool▁call▁begin｜>),
// Mistral ([TOOL_CALLS]).

// markers begin what is held back while a reply arrives, because it may be a call.
var markers = []string{"<tool_call", "<function", "<invoke", "<minimax:tool_call", "<|", "<｜tool",
	"[TOOL_CALLS]", "</think>"}

// thinkTags open the thinking at the start of a content.
var thinkTags = []string{"<think>", "<thinking>", "<thought>"}

var (
	callStart = shell.Pattern(`<tool_calls?>|<function=|<function_calls>|<invoke name=|<minimax:tool_call>|` +
		`\[TOOL_CALLS\]|<\|python_tag\|>|<\|channel\|>\w+ to=|<\|tool_calls_section_begin\|>|` +
		`<\|tool_call_begin\|>|<｜tool▁calls?▁begin｜>`)
	// wrappers stand around calls and between them.
	wrappers = shell.Pattern(`^(?:\s|</?tool_calls?>|</?function_calls>|</?minimax:tool_call>|</function>|</invoke>|` +
		`\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_calls_section_(?:begin|end)\|>|<\|tool_call_end\|>|` +
		`<｜tool▁calls▁(?:begin|end)｜>|<｜tool▁call▁end｜>|<\|call\|>|<\|start\|>assistant|<\|eom_id\|>|` +
		`<\|im_end\|>|` + "```)*")
	// callHead names the tool; its arguments follow.
	callHead = shell.Pattern(`^(?:<function=([\w.-]+)>|<invoke name="([\w.-]+)">|` +
		`<\|channel\|>\w+ to=(?:functions\.)?([\w.-]+)\s*(?:<\|constrain\|>\s*\w*|json)?\s*<\|message\|>|` +
		`<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>|` +
		"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([\\w.-]+)(?:<｜tool▁sep｜>)?\\s*(?:```json)?|" +
		`([\w.-]+)(?:\[CALL_ID\]\w+)?\[ARGS\]|([\w.-]+)\s*<arg_key>)`)
	parameter = shell.Pattern(`(?s)^\s*(?:<parameter(?:=| name=")([\w.-]+)"?[^>]*>\n?(.*?)\n?</parameter>|` +
		`<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>)`)
	channel   = shell.Pattern(`<\|(?:start\|>assistant<\|)?channel\|>(\w+)<\|message\|>`)
	channelTo = shell.Pattern(`<\|(?:end|return)\|>`)
)

// reading is what a reply's text holds once its markup is read.
type reading struct {
	text, thinking string
	calls          []op.Call
	repairs        []string
}

// readMarkup takes thinking and calls out of a text. Only calls of offered tools that end the text, outside
// of code blocks, are calls; others stay in the text, and if they look meant, the reply is unread. No tools:
// only thinking is looked for.
func readMarkup(text string, tools []model.ToolSpec) reading {
	c := reading{text: text}
	c.takeThinking()
	if len(tools) == 0 {
		return c
	}
	whole := strings.TrimSpace(c.text)
	if inner := strings.TrimPrefix(whole, "```json\n"); strings.HasPrefix(inner, "{") {
		if calls, ok := readCalls(inner, true, tools); ok {
			c.calls, c.text = calls, ""
			c.repairs = append(c.repairs, op.RepairCallAsText)
		}
		return c
	}
	for _, at := range callStart().FindAllStringIndex(c.text, -1) {
		before := strings.TrimSuffix(c.text[:at[0]], "<|start|>assistant")
		if quotes(before) {
			continue
		}
		if calls, ok := readCalls(c.text[at[0]:], false, tools); ok {
			c.calls, c.text = calls, strings.TrimRight(before, " \t\r\n")
			c.repairs = append(c.repairs, op.RepairCallAsText)
		} else {
			c.repairs = append(c.repairs, op.RepairUnreadCall)
		}
		break
	}
	return c
}

// quotes reports whether what follows a text in its line is quoted, or words of a sentence: in a code block, after a
// backtick or a sign of quotation, or indented as code is.
func quotes(before string) bool {
	line := before[strings.LastIndexByte(before, '\n')+1:]
	return inCode(before) || strings.TrimLeft(line, " ") != "" || len(line) > 3
}

// inCode reports whether a text ends inside a code block or right after a backtick.
func inCode(before string) bool {
	return strings.Count(before, "```")%2 == 1 || strings.Count(before, "~~~")%2 == 1 || strings.HasSuffix(before, "`")
}

func (c *reading) takeThinking() {
	before := c.text
	trimmed := strings.TrimLeft(c.text, " \t\r\n")
	if parts := channel().FindAllStringSubmatchIndex(trimmed, -1); len(parts) > 0 && parts[0][0] == 0 {
		c.text = ""
		for i, p := range parts {
			end := len(trimmed)
			if i+1 < len(parts) {
				end = parts[i+1][0]
			}
			said := trimmed[p[1]:end]
			if to := callStart().FindStringIndex(said); to != nil { // a call follows
				c.text, said = c.text+said[to[0]:], said[:to[0]]
			}
			said = strings.TrimSuffix(channelTo().ReplaceAllString(said, ""), "<|start|>assistant")
			if trimmed[p[2]:p[3]] == "final" {
				c.text = said + c.text
			} else {
				c.thinking += said
			}
		}
	} else if open := prefixOf(trimmed, thinkTags); open != "" {
		end := "</" + open[1:]
		var closed bool
		c.thinking, c.text, closed = strings.Cut(trimmed[len(open):], end)
		if closed {
			c.text = strings.TrimLeft(c.text, "\r\n")
		}
	} else if at := strings.Index(c.text, "</think>"); at >= 0 && !inCode(c.text[:at]) &&
		strings.Count(c.text, "</think>") == 1 {
		// The template of the model wrote the opening tag.
		if after := c.text[at+len("</think>"):]; after == "" || after[0] == '\n' || after[0] == '\r' {
			c.thinking, c.text = c.text[:at], strings.TrimLeft(after, "\r\n")
		}
	}
	if c.text != before {
		c.repairs = append(c.repairs, op.RepairThinkInContent)
	}
}

func prefixOf(s string, prefixes []string) string {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return p
		}
	}
	return ""
}

// readCalls reads a text that consists of calls only. bare: a JSON object may stand without a wrapper.
func readCalls(text string, bare bool, tools []model.ToolSpec) (calls []op.Call, ok bool) {
	for {
		around := wrappers().FindString(text)
		text = text[len(around):]
		if text == "" {
			return calls, len(calls) > 0
		}
		if head := callHead().FindStringSubmatchIndex(text); head != nil {
			name, end := "", head[1]
			for i := 2; i < len(head); i += 2 {
				if head[i] >= 0 {
					name = text[head[i]:head[i+1]]
				}
			}
			if strings.HasSuffix(text[:end], "<arg_key>") { // the head ends before the first argument
				end -= len("<arg_key>")
			}
			t := toolNamed(tools, name)
			if t == nil {
				return nil, false
			}
			args, rest, ok := readArgs(text[end:], t)
			if !ok {
				return nil, false
			}
			calls, text = append(calls, op.Call{ID: "call_" + rand.Text(), Name: t.Name, Args: args}), rest
			continue
		}
		if !bare && strings.TrimSpace(around) == "" { // JSON without a mark is a call only where it is the whole answer
			return nil, false
		}
		value, rest, ok := cutJSON(text)
		if !ok {
			return nil, false
		}
		for _, raw := range listOf(value) {
			o := objectOf(raw)
			if inner := objectOf(o["function"]); inner != nil {
				o = inner
			}
			t := toolNamed(tools, stringOf(o["name"]))
			if t == nil {
				return nil, false
			}
			args := "{}"
			for _, key := range [...]string{"arguments", "parameters", "args", "input"} {
				if present(o[key]) {
					args = argsOf(o[key])
				}
			}
			args, _ = repairArgs(args)
			calls = append(calls, op.Call{ID: "call_" + rand.Text(), Name: t.Name, Args: args})
		}
		text = rest
	}
}

func toolNamed(tools []model.ToolSpec, name string) *model.ToolSpec {
	for i := range tools {
		if name != "" && (tools[i].Name == name || sendableName(tools[i].Name) == name) {
			return &tools[i]
		}
	}
	return nil
}

// readArgs reads the arguments of a call: a JSON object, or one element for each parameter, whose type the
// tool's schema tells.
func readArgs(text string, t *model.ToolSpec) (args, rest string, ok bool) {
	properties := objectOf(objectOf(t.Schema)["properties"])
	values := map[string]any{}
	for {
		m := parameter().FindStringSubmatch(text)
		if m == nil {
			break
		}
		key, value := m[1]+m[3], m[2]+m[4]
		values[key] = value
		if kind := wordOf(objectOf(properties[key])["type"]); kind != "" && kind != "string" &&
			json.Valid([]byte(value)) {
			values[key] = json.RawMessage(strings.TrimSpace(value))
		}
		text = text[len(m[0]):]
	}
	if len(values) > 0 {
		encoded, err := json.Marshal(values)
		return string(encoded), text, err == nil
	}
	value, rest, ok := cutJSON(text)
	if !ok { // a call without arguments
		return "{}", text, strings.TrimSpace(wrappers().FindString(text)) != "" || strings.TrimSpace(text) == ""
	}
	return string(value), rest, value[0] == '{'
}

func cutJSON(text string) (value json.RawMessage, rest string, ok bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	if dec.Decode(&value) != nil {
		return nil, text, false
	}
	return value, text[dec.InputOffset():], true
}

// sieve passes the text of a reply on as it arrives, but for what may be markup: that waits until the reply
// is complete.
type sieve struct {
	raw   strings.Builder
	at    int    // how much of raw has been passed on or skipped
	close string // ends the thinking under way
	begun bool   // it is known whether the text begins with thinking
	held  bool   // a marker was seen
	// breaks: the thinking has just ended, and the line breaks after it are no text.
	breaks bool
}

// add returns what of the content may be passed on after another piece of it.
func (s *sieve) add(piece string) (text, thinking string) {
	s.raw.WriteString(piece)
	for !s.held {
		rest := s.raw.String()[s.at:]
		switch {
		case !s.begun:
			trimmed := strings.TrimLeft(rest, " \t\r\n")
			if open := prefixOf(trimmed, thinkTags); open != "" {
				s.at += len(rest) - len(trimmed) + len(open)
				s.close = "</" + open[1:]
			} else if trimmed == "" || beginning(trimmed, thinkTags) {
				return text, thinking
			}
			s.begun = true
			continue
		case s.close != "":
			inside, _, closed := strings.Cut(rest, s.close)
			if !closed {
				inside = rest[:len(rest)-unfinished(rest, []string{s.close})]
				s.at += len(inside)
				return text, thinking + inside
			}
			thinking += inside
			s.at += len(inside) + len(s.close)
			s.close, s.breaks = "", true
			continue
		}
		if s.breaks {
			trimmed := strings.TrimLeft(rest, "\r\n")
			s.at += len(rest) - len(trimmed)
			if trimmed == "" {
				return text, thinking // more may follow
			}
			rest, s.breaks = trimmed, false
		}
		end := len(rest) - unfinished(rest, markers)
		for _, m := range markers {
			if at := strings.Index(rest, m); at >= 0 && at <= end {
				end, s.held = at, true
			}
		}
		s.at += end
		return text + rest[:end], thinking
	}
	return text, thinking
}

func beginning(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, s) })
}

// unfinished returns how many bytes at the end of s may be the beginning of one of the words.
func unfinished(s string, words []string) int {
	for n := min(len(s), len("<minimax:tool_call")); n > 0; n-- { // the longest of all words
		if beginning(s[len(s)-n:], words) {
			return n
		}
	}
	return 0
}

// repairArgs returns arguments as the JSON of an object if they are that in another form, and the repair's
// name.
func repairArgs(args string) (repaired, repair string) {
	trimmed := strings.TrimSpace(args)
	if json.Valid([]byte(trimmed)) {
		if s := stringOf(json.RawMessage(trimmed)); objectOf(json.RawMessage(s)) != nil {
			return s, op.RepairArgsString
		}
		return args, ""
	}
	if fenced, ok := strings.CutPrefix(trimmed, "```"); ok {
		inner := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(fenced, "json"), "```"))
		if objectOf(json.RawMessage(inner)) != nil {
			return inner, op.RepairArgsString
		}
	}
	if value, rest, ok := cutJSON(trimmed); ok && value[0] == '{' && strings.TrimSpace(rest) == string(value) {
		return string(value), op.RepairArgsTwice
	}
	if escaped := escapeControls(trimmed); objectOf(json.RawMessage(escaped)) != nil {
		return escaped, op.RepairArgsControls
	}
	return args, ""
}

// escapeControls escapes the line breaks and tabs inside the strings of a JSON text.
func escapeControls(s string) string {
	var out strings.Builder
	inside, escaped := false, false
	for _, r := range s {
		switch {
		case escaped:
			escaped = false
		case inside && r == '\\':
			escaped = true
		case r == '"':
			inside = !inside
		case inside && r < ' ':
			quoted, _ := json.Marshal(string(r)) // a string always marshals
			out.WriteString(strings.Trim(string(quoted), `"`))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
