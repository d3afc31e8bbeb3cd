//go:build unix

// Package editor is the line that is typed: rows, pastes, completions and a history for
// each directory.
package editor

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/paint"
)

const (
	maxEditorRows = 8
	maxTypedRows  = 100_000
	// A paste of more than this is shown as one piece.
	pasteRows, pasteRunes = 5, 600
	maxOffered            = 8 // completions shown at once
	maxListedFiles        = 20_000
)

// Editor is the line being typed, of several rows if need be.
type Editor struct {
	area    textarea.Model
	history *History
	pasted  []string // by the numbers in their marks

	dir     string
	files   []string // beneath dir; nil: not listed yet
	offered []string // completions of the word before the cursor
	chosen  int
	verbs   []Verb
	search  *search // nil: none
}

// search looks for an earlier message.
type search struct {
	query string
	draft string // the line before
	at    int    // of the entry shown, from the end; 0: none
	fails bool
}

// Verb is a slash command to complete, with what it does.
type Verb struct{ Name, About string }

// New returns an editor for a directory, with the slash commands it completes.
func New(h *History, dir string, verbs []Verb) Editor {
	a := textarea.New()
	a.ShowLineNumbers, a.Prompt, a.Placeholder = false, "", ""
	a.DynamicHeight, a.MinHeight, a.MaxHeight, a.MaxContentHeight, a.CharLimit = true, 1, maxEditorRows, maxTypedRows, 0
	a.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("shift+enter", "alt+enter", "ctrl+j"))
	a.SetVirtualCursor(false)
	plain := lipgloss.NewStyle()
	styles := textarea.DefaultStyles(true)
	for _, s := range []*textarea.StyleState{&styles.Focused, &styles.Blurred} {
		s.Base, s.Text, s.CursorLine, s.Prompt, s.Placeholder = plain, plain, plain, plain, paint.Faint
	}
	a.SetStyles(styles)
	a.Focus()
	a.SetHeight(1)
	return Editor{area: a, history: h, dir: dir, verbs: verbs}
}

// A mark is shown in the place of a pasted text; pasteEnd matches one at the end.
var (
	pasteMark = regexp.MustCompile(`\[paste (\d+): [^\]]*\]`)
	pasteEnd  = regexp.MustCompile(pasteMark.String() + `$`)
)

// Text returns the line with pasted texts in the place of their marks.
func (e *Editor) Text() string {
	return pasteMark.ReplaceAllStringFunc(e.area.Value(), func(mark string) string {
		n, _ := strconv.Atoi(pasteMark.FindStringSubmatch(mark)[1])
		if n < 1 || n > len(e.pasted) {
			return mark
		}
		return e.pasted[n-1]
	})
}

// Edit puts a text into the line as it is, however long.
func (e *Editor) Edit(text string) { e.area.SetValue(text) }

// Value returns the line as shown, with marks for pasted texts.
func (e *Editor) Value() string { return e.area.Value() }

// Set puts a text into the line, the cursor at its end.
func (e *Editor) Set(text string) {
	e.area.SetValue("")
	e.Paste(text) // a long text is shown by a mark
}

// Submit returns what was typed and empties the line.
func (e *Editor) Submit() string {
	e.search = nil
	text := strings.TrimSpace(e.Text())
	e.history.Add(text)
	e.area.Reset()
	e.pasted, e.offered, e.files = nil, nil, nil // files are listed anew, since the agent may write some
	return text
}

func (e *Editor) Empty() bool { return strings.TrimSpace(e.area.Value()) == "" }

// Paste inserts a text as one piece: a long one is shown by a mark.
func (e *Editor) Paste(text string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	if rows := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1; rows > pasteRows ||
		len([]rune(text)) > pasteRunes {
		e.pasted = append(e.pasted, text)
		text = fmt.Sprintf("[paste %d: %s]", len(e.pasted), quote.Number(rows, "line"))
	}
	e.area.InsertString(text)
	e.offer()
}

// Press handles a key. ok is false if the editor does not use it.
func (e *Editor) Press(k tea.KeyPressMsg) (cmd tea.Cmd, ok bool) {
	if len(e.offered) > 0 {
		switch k.String() {
		case "up", "ctrl+p":
			e.chosen = (e.chosen + len(e.offered) - 1) % len(e.offered)
			return nil, true
		case "down", "ctrl+n":
			e.chosen = (e.chosen + 1) % len(e.offered)
			return nil, true
		case "tab":
			e.complete()
			return nil, true
		case "esc":
			e.offered = nil
			return nil, true
		}
	}
	if e.search == nil && k.String() == "ctrl+r" {
		e.search, e.offered = &search{draft: e.Text()}, nil
		return nil, true
	} else if e.search != nil {
		e.searched(k)
		return nil, true
	}
	switch k.String() {
	case "up", "ctrl+p":
		if e.area.Line() == 0 && e.area.LineInfo().RowOffset == 0 {
			return nil, e.recall(e.history.back)
		}
	case "down", "ctrl+n":
		if e.area.Line() == e.area.LineCount()-1 && e.area.LineInfo().RowOffset == e.area.LineInfo().Height-1 {
			return nil, e.recall(e.history.forth)
		}
	case "backspace", "ctrl+h", "alt+backspace", "ctrl+w":
		_, before := e.word()
		if mark := pasteEnd.FindString(before); mark != "" { // what is left of a mark would be sent as it is
			e.erase(mark)
			return nil, true
		}
	}
	e.area, cmd = e.area.Update(k)
	e.offer()
	return cmd, true
}

// Searching reports whether an earlier message is looked for; Press then takes every key but Enter, which sends it.
func (e *Editor) Searching() bool { return e.search != nil }

func (e *Editor) searched(k tea.KeyPressMsg) {
	s, from := e.search, 0
	switch name := k.String(); {
	case name == "ctrl+c" || name == "ctrl+g":
		e.search = nil
		e.Set(s.draft)
		e.offered = nil
		return
	case name == "ctrl+r":
		from = s.at
	case name == "backspace" && s.query != "":
		s.query = string([]rune(s.query)[:len([]rune(s.query))-1])
	case k.Text != "":
		s.query += k.Text
	default:
		e.search = nil
		return
	}
	text, at := e.history.find(s.query, from)
	if s.fails = at == from && s.query != ""; s.query == "" {
		text, at = s.draft, 0
	}
	if s.at = at; !s.fails {
		e.Set(text)
		e.offered = nil
	}
}

// Enter ends the row or takes the offered completion. It reports whether to send the text.
func (e *Editor) Enter() bool {
	if rows := e.area.Value(); strings.HasSuffix(rows, `\`) { // a new row
		e.area.SetValue(strings.TrimSuffix(rows, `\`) + "\n")
		return false
	}
	if e.Offering() {
		word, _ := e.word()
		e.complete()
		return strings.HasPrefix(word, "/") // a completed command is sent at once, a file's name is not
	}
	return true
}

func (e *Editor) Offering() bool { return len(e.offered) > 0 }

func (e *Editor) Dismiss() { e.offered = nil }

// Remember puts a text that was not sent into the history.
func (e *Editor) Remember(text string) { e.history.Add(text) }

// recall puts another entry of the history into the line.
func (e *Editor) recall(step func(string) (string, bool)) bool {
	text, ok := step(e.Text())
	if ok {
		e.Set(text)
		e.offered = nil
	}
	return ok
}

// word returns the word before the cursor, and the row's text up to the cursor.
func (e *Editor) word() (word, before string) {
	rows := strings.Split(e.area.Value(), "\n")
	if at := e.area.Line(); at < len(rows) {
		runes := []rune(rows[at])
		before = string(runes[:min(e.area.Column(), len(runes))])
	}
	return before[strings.LastIndexAny(before, " \t")+1:], before
}

// offer finds completions: of a command at the line's beginning, and of @file.
func (e *Editor) offer() {
	e.offered, e.chosen = nil, 0
	word, before := e.word()
	switch {
	case strings.HasPrefix(word, "/") && word == before && e.area.Line() == 0:
		for _, v := range e.verbs {
			if strings.HasPrefix(v.Name, word) && v.Name != word {
				e.offered = append(e.offered, v.Name)
			}
		}
	case strings.HasPrefix(word, "@"):
		if e.files == nil {
			e.files = listFiles(e.dir)
		}
		e.offered = match(e.files, word[1:])
	}
}

func (e *Editor) complete() {
	word, _ := e.word()
	choice := e.offered[e.chosen]
	if strings.HasPrefix(word, "@") {
		if choice = "@" + choice; strings.ContainsAny(choice, " \t") {
			choice = `@"` + choice[1:] + `"`
		}
	}
	e.erase(word)
	e.area.InsertString(choice + " ")
	e.offered = nil
}

// erase removes the text before the cursor.
func (e *Editor) erase(text string) {
	for range []rune(text) {
		e.area, _ = e.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
	}
}

// View renders the line and what is offered below it.
func (e *Editor) View(width int) (string, *tea.Cursor) {
	e.area.SetWidth(max(width-2, 4))
	rows := strings.Split(e.area.View(), "\n")
	for i := range rows {
		mark := "  "
		if i == 0 {
			mark = paint.Bold.Render(">") + " "
		}
		rows[i] = mark + strings.TrimRight(rows[i], " ")
	}
	c := e.area.Cursor()
	if c != nil {
		c.X += 2
	}
	if s := e.search; s != nil {
		said := "search: "
		if s.fails {
			said = "no earlier message has: "
		}
		rows = append(rows, paint.Faint.Render("  "+said)+s.query+
			paint.Faint.Render("  Ctrl-R older · Enter sends · Esc edits · Ctrl-C back"))
	}
	first := max(0, min(e.chosen-maxOffered/2, len(e.offered)-maxOffered))
	for i, text := range e.offered[first:min(first+maxOffered, len(e.offered))] {
		style := paint.Faint
		if first+i == e.chosen {
			style = paint.Cyan
		}
		if at := slices.IndexFunc(e.verbs, func(v Verb) bool { return v.Name == text }); at >= 0 {
			text = fmt.Sprintf("%-11s %s", text, e.verbs[at].About)
		}
		rows = append(rows, style.Render(paint.Cut("    "+term.Clean(text), width)))
	}
	if more := len(e.offered) - first - maxOffered; more > 0 {
		rows = append(rows, paint.Faint.Render(fmt.Sprintf("    ↓ %d more", more)))
	}
	return strings.Join(rows, "\n"), c
}

// listFiles lists at most maxListedFiles files beneath a directory, without those of version
// control and packages.
func listFiles(dir string) []string {
	files := []string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // unreadable: not offered
		}
		if name := d.Name(); d.IsDir() && path != dir &&
			(name == ".git" || name == "node_modules" || name == "__pycache__") {
			return filepath.SkipDir
		}
		if rel, err := filepath.Rel(dir, path); err == nil && !d.IsDir() {
			files = append(files, rel)
		}
		if len(files) >= maxListedFiles {
			return filepath.SkipAll
		}
		return nil
	})
	return files
}

// match returns the names that contain a text; those whose last part begins with it come first.
func match(names []string, text string) []string {
	text = strings.ToLower(text)
	var out []string
	for _, n := range names {
		if strings.Contains(strings.ToLower(n), text) && n != text {
			out = append(out, n)
		}
	}
	rank := func(n string) int {
		n = strings.ToLower(n)
		switch {
		case strings.HasPrefix(filepath.Base(n), text):
			return 0
		case strings.HasPrefix(n, text):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b string) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		return strings.Count(a, "/") - strings.Count(b, "/")
	})
	return out[:min(len(out), 50)]
}
