package sessions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// The names of our own tools.
const (
	bash    = "Bash"
	read    = "ReadFile"
	write   = "WriteFile"
	replace = "StrReplaceFile"
)

// toolNames maps the agents' tools to ours, by their names in lower case.
var toolNames = map[string]string{
	"bash": bash, "exec_command": bash, "shell": bash, "shell_command": bash,
	"local_shell": bash, "run_shell_command": bash,
	"read": read, "read_file": read,
	"write": write, "write_file": write,
	"edit": replace, "multiedit": replace, "replace": replace, "apply_patch": replace,
}

// network matches tools whose results come from outside: the web and MCP servers.
var network = shell.Pattern(`(?i)^(mcp_|web|google_web|fetch)`)

// ownTool matches the tools of this program's MCP server, by the names that the
// agents give them.
var ownTool = shell.Pattern(`^(mcp_+)?(plugin_)?(anamnesis_+)+(timeline|jump_to_step|checkpoint|diff|recall|remember|` +
	`show_operation)$`)

// args are the arguments of the usual tools of all agents.
type args struct {
	Command    json.RawMessage `json:"command"`
	Cmd        string          `json:"cmd"`
	Path       string          `json:"path"`
	FilePath   string          `json:"file_path"`
	FilePath2  string          `json:"filePath"`
	Content    *string         `json:"content"`
	Old        string          `json:"old_string"`
	Old2       string          `json:"oldString"`
	New        string          `json:"new_string"`
	New2       string          `json:"newString"`
	ReplaceAll bool            `json:"replace_all"`
	Edits      []args          `json:"edits"`
	Input      string          `json:"input"`
}

// edit is one replacement, as our own tool takes it.
type edit struct {
	Old        string `json:"old"`
	New        string `json:"new"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

func (a *args) edit() edit { return edit{a.Old + a.Old2, a.New + a.New2, a.ReplaceAll} }

// command is the command line; a shell's own arguments are left out of a list.
func (a *args) command() string {
	var text string
	if a.Command == nil || json.Unmarshal(a.Command, &text) == nil {
		return cmp.Or(text, a.Cmd)
	}
	var list []string
	if json.Unmarshal(a.Command, &list) != nil {
		return ""
	}
	if len(list) == 3 && strings.HasPrefix(list[1], "-") && strings.HasSuffix(list[0], "sh") {
		return list[2]
	}
	return strings.Join(list, " ")
}

// IsOwnTool reports whether a tool is one of this program's MCP server.
func IsOwnTool(name string) bool { return ownTool().MatchString(name) }

// WithoutOwn returns a text without what this program showed the agent in it.
func WithoutOwn(text string) string { return strings.TrimSpace(ownMarks(text)) }

// Unreported reports whether nothing says how a command ended. Of other tools the end of the call is
// enough.
func (c *Call) Unreported() bool {
	return !c.Done || toolNames[strings.ToLower(c.Tool)] == bash && c.Exit == nil && !c.Failed && !c.Refused
}

// result is a tool's result as hooks and editors get it: an object for programs in place of the
// text that the model is shown.
type result struct {
	Stdout  *string         `json:"stdout"`
	Stderr  string          `json:"stderr"`
	Content json.RawMessage `json:"content"` // parts or a text; of Write the file's
	Result  json.RawMessage `json:"result"`
	Output  json.RawMessage `json:"output"`
	Message string          `json:"message"`
	Text    *string         `json:"text"`
	Error   json.RawMessage `json:"error"`
	LLM     json.RawMessage `json:"llmContent"` // of Gemini CLI
	IsError bool            `json:"isError"`

	// Of Claude Code's file tools and searches.
	File *struct {
		Content   *string `json:"content"`
		StartLine int     `json:"startLine"`
	} `json:"file"`
	FilePath  string    `json:"filePath"`
	Type      string    `json:"type"`
	Filenames *[]string `json:"filenames"`

	// Of a command whose exit code is not 0 or not known yet.
	Interrupted    bool   `json:"interrupted"`
	BackgroundTask string `json:"backgroundTaskId"`
	Interpretation string `json:"returnCodeInterpretation"`
}

// readResult reads a result; nil where it is no object.
func readResult(raw json.RawMessage) *result {
	var r result
	err := json.Unmarshal(raw, &r)
	var odd *json.UnmarshalTypeError
	if err != nil && (!errors.As(err, &odd) || odd.Field == "") { // the other fields are filled
		return nil
	}
	return &r
}

// ResultText returns a tool's result as the model is shown it, from any form that hooks and editors
// get. failed reports that the result says so itself.
func ResultText(raw json.RawMessage) (text string, failed bool) {
	r := readResult(raw)
	if r == nil {
		if _, err := blocks(raw); err == nil {
			return Text(raw), false
		}
		return strings.Join(flatten(nil, "", raw), "\n"), false
	}
	has := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
	failed = r.IsError || has(r.Error)
	nested := func(raw json.RawMessage) string {
		text, bad := ResultText(raw)
		failed = failed || bad
		return text
	}
	switch {
	case r.Stdout != nil:
		if text = *r.Stdout; r.Stderr != "" {
			text += "\n" + r.Stderr
		}
		if r.BackgroundTask != "" {
			text = strings.TrimSpace("Command running in background with ID: " + r.BackgroundTask + "\n" + text)
		}
		return text, failed
	case r.File != nil:
		if r.File.Content == nil { // an image
			return "", failed
		}
		return numbered(*r.File.Content, max(r.File.StartLine, 1)), failed
	case has(r.LLM):
		if text = nested(r.LLM); text != "" || !has(r.Error) {
			return text, failed
		}
		return nested(r.Error), true
	case r.Text != nil:
		return *r.Text, failed
	case r.FilePath != "" && r.Type == "create":
		return "File created successfully at: " + r.FilePath, failed
	case r.FilePath != "":
		return "The file " + r.FilePath + " has been updated successfully.", failed
	case has(r.Error):
		return nested(r.Error), true
	case has(r.Content):
		if text = Text(r.Content); text != "" || r.Filenames == nil {
			return text, failed
		}
	case has(r.Result):
		return nested(r.Result), failed
	case has(r.Output):
		return nested(r.Output), failed
	case r.Message != "":
		return r.Message, failed
	}
	if r.Filenames != nil {
		return cmp.Or(strings.Join(*r.Filenames, "\n"), "No files found"), failed
	}
	return strings.Join(flatten(nil, "", raw), "\n"), failed
}

// numbered is a part of a file as Claude Code shows it.
func numbered(text string, first int) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = fmt.Sprintf("%d\t%s", first+i, lines[i])
	}
	return strings.Join(lines, "\n")
}

// flatten appends the values in an object or a list, each after its name. What is no JSON is one value.
func flatten(list []string, name string, raw json.RawMessage) []string {
	var fields map[string]json.RawMessage
	var elements []json.RawMessage
	switch {
	case json.Unmarshal(raw, &fields) == nil:
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			list = flatten(list, key, fields[key])
		}
	case json.Unmarshal(raw, &elements) == nil:
		for _, one := range elements {
			list = flatten(list, name, one)
		}
	default:
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // a number stays as it is
		list = append(list, strings.TrimPrefix(name+": "+text, ": "))
	}
	return list
}

// ExitedZero reports whether a result of Claude Code, which holds no exit code, says that the
// command ended with 0. One in the background has not ended, and of a code that is no error, such as
// 1 of a search that found nothing, the result says what it means.
func ExitedZero(raw json.RawMessage) bool {
	r := readResult(raw)
	return r != nil && r.Stdout != nil && !r.Interrupted && r.BackgroundTask == "" && r.Interpretation == ""
}

// Normalise puts a call into our own form. What is not understood stays as it is.
func (c *Call) Normalise(dir string) {
	if ownTool().MatchString(c.Tool) {
		c.Text, c.Network = "", false
		return
	}
	c.Network = c.Network || network().MatchString(c.Tool)
	c.Text = ownMarks(c.Text)
	own := toolNames[strings.ToLower(c.Tool)]
	var a args
	if json.Unmarshal([]byte(c.Args), &a) != nil {
		return
	}
	path := relativePath(dir, a.Path+a.FilePath+a.FilePath2)
	if path != "" && (c.Tool == write || c.Tool == replace) { // it is in our form
		c.Writes = []string{path}
	}
	var put any
	switch own {
	case bash:
		command := a.command()
		if patch := heredocPatch().FindStringSubmatch(command); patch != nil {
			own, a.Input = replace, patch[1]
			put = c.patched(dir, a.Input)
		} else if command != "" {
			put = map[string]string{"command": command}
		}
	case read:
		if path != "" {
			c.Reads, put = []string{path}, map[string]string{"path": path}
		}
	case write:
		if path != "" && a.Content != nil {
			c.Writes, put = []string{path}, map[string]string{"path": path, "content": *a.Content}
		}
	case replace:
		switch {
		case a.Input != "":
			put = c.patched(dir, a.Input)
		case path != "":
			edits := []edit{a.edit()}
			if len(a.Edits) > 0 {
				edits = nil
				for _, e := range a.Edits {
					edits = append(edits, e.edit())
				}
			}
			c.Writes, put = []string{path}, replaceArgs(path, edits)
		}
	}
	if data, err := op.PlainJSON(put); put != nil && err == nil {
		c.Tool, c.Args = own, string(data)
	}
}

func replaceArgs(path string, edits []edit) any {
	if len(edits) == 1 {
		return map[string]any{"path": path, "edit": edits[0]}
	}
	return map[string]any{"path": path, "edit": edits}
}

// heredocPatch is Codex's apply_patch as a shell command.
var heredocPatch = shell.Pattern(`(?s)^\s*apply_patch\s+<<-?\s*['"]?\w+['"]?\n(.*\*\*\* End Patch)`)

// patched reads a patch of Codex as replacements. Nil: not in one file.
func (c *Call) patched(dir, patch string) any {
	var edits []edit
	var old, now []string
	flush := func() {
		if len(old)+len(now) > 0 {
			edits = append(edits, edit{Old: strings.Join(old, "\n"), New: strings.Join(now, "\n")})
			old, now = nil, nil
		}
	}
	path := ""
	for line := range strings.SplitSeq(patch, "\n") {
		if head, name, ok := strings.Cut(line, " File: "); ok && strings.HasPrefix(head, "*** ") {
			flush()
			path = relativePath(dir, strings.TrimSpace(name))
			c.Writes = append(c.Writes, path)
			continue
		}
		switch {
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "*** "):
			flush()
		case strings.HasPrefix(line, "-"):
			old = append(old, line[1:])
		case strings.HasPrefix(line, "+"):
			now = append(now, line[1:])
		// A kept line is between two edits, and in neither.
		case strings.HasPrefix(line, " ") && len(old)+len(now) > 0:
			flush()
		}
	}
	flush()
	if len(c.Writes) != 1 {
		return nil
	}
	return replaceArgs(path, edits)
}

// relativePath returns a path relative to the session's directory where it lies in it.
func relativePath(dir, path string) string {
	if dir == "" || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// Own texts that a session may hold: what this program showed the agent. It is left
// out, so that nothing is learned from it again.
var ownText = shell.Pattern(`(?s)<(recalled_cards|hook_context|anamnesis)\b[^>]*>.*?` +
	`</(recalled_cards|hook_context|anamnesis)>\n?|<!-- anamnesis:begin.*?<!-- anamnesis:end[^>]*-->\n?|` +
	`\[ANAMNESIS_BLOCK[^\]]*\].*?(\[/ANAMNESIS_BLOCK[^\]]*\]|$)`)

func ownMarks(text string) string {
	if !strings.ContainsAny(text, "<[") {
		return text
	}
	return ownText().ReplaceAllString(text, "")
}

// exitCode reads an exit code that a text names; nil if it names none.
func exitCode(pattern *regexp.Regexp, text string) *int {
	if m := pattern.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return &n
		}
	}
	return nil
}

// block is a part of a message's content.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// blocks reads content that is a text or a list of parts.
func blocks(raw json.RawMessage) ([]block, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}, nil
	}
	var list []block
	err := decode(raw, &list)
	return list, err
}

// Text joins the texts of a prompt or a result, in the forms that the agents give them.
func Text(raw json.RawMessage) string {
	list, err := blocks(raw)
	if err != nil {
		return string(raw)
	}
	var texts []string
	for _, b := range list {
		if b.Text != "" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}
