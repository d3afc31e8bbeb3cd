package page

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/page/door"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/review"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// layout.html is every page's frame, parts/*.html are pieces that several
// pages or answers use, each other file defines "main" of one page.
//
//go:embed templates
var templates embed.FS

// view is the data of the frame and of a page's "main".
type view struct {
	Title   string // of the page, before the program's name
	Section string // the entry of the navigation it belongs to
	Done    string // the last decision, announced to screen readers
	Problem string // what was refused, and the remedy; announced at once
	Body    any    // the page's own
	Script  string // a script of the page's own, under /static/; "" for none
	Style   string // and a style sheet

	Undo     *review.Done // what could be taken back; nil for nothing
	UndoPath string       // where the form that does it is sent

	May door.Right // what the browser may do
}

// pair is the data of a part that needs two values.
type pair struct{ A, B any }

// section is an entry of the navigation; Key is the single key that opens it.
type section struct{ Path, Name, Key string }

func sections() []section {
	return []section{{"/review", "Review", ""}, {"/cards", "Cards", "/"}, {"/tasks", "Tasks", ""},
		{"/sessions", "Access", ""}}
}

// pages holds the parsed templates.
type pages struct {
	whole map[string]*template.Template // by file name, without .html
	parts *template.Template
}

// unlinked removes the ids of cards from an operation's text; links beside it name them.
func unlinked(text string, cards []string) string {
	for _, id := range cards {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\n→ card "+id, ""), " "+id, "")
	}
	return text
}

func parsePages() (*pages, error) {
	base := template.New("layout.html").Option("missingkey=error").Funcs(template.FuncMap{
		"clean":    term.Clean,
		"who":      timeline.ActorName,
		"line":     term.Line,
		"meaning":  meaning,
		"unlinked": unlinked,
		"join":     func(s []string) string { return strings.Join(s, " · ") },
		"pair":     func(a, b any) pair { return pair{a, b} },
		"sections": sections,
		"act":      func(c *cardView, act, label, key string) actView { return actView{c, act, label, key} },
		"merge": func(c *cardView, near nearCard, turned bool, at int) mergeView {
			return mergeView{c, near, turned, at}
		},
		"moment": func(t time.Time) string { return t.Local().Format("2006-01-02 15:04") },
	})
	base, err := base.ParseFS(templates, "templates/layout.html", "templates/parts/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse the pages' frame: %w", err)
	}
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list the pages: %w", err)
	}
	p := &pages{whole: make(map[string]*template.Template), parts: base}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" {
			continue
		}
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(templates, file)
		}
		if err != nil {
			return nil, fmt.Errorf("parse page %s: %w", name, err)
		}
		p.whole[name] = t
	}
	// html/template locks a set at its first execution, so all clones are made here.
	return p, nil
}

// meaning explains a state of a card or a task, for the title of its chip.
func meaning(state any) string {
	return map[string]string{
		"draft":       "waits for a review; tasks are shown it as a hypothesis, if at all",
		"reviewed":    "a user approved it; tasks are shown it",
		"retired":     "no task is shown it; it can be restored",
		"superseded":  "another card took its place",
		"running":     "a process works on it now",
		"asking":      "it waits for an answer; a process has it, or goes on with the answer",
		"waiting":     "for a user, a provider or somebody who continues it",
		"abandoned":   "its process has written nothing for a while; 'anamnesis resume' takes it",
		"open":        "a session waits for the next request",
		"done":        "the last turn ended with an answer",
		"interrupted": "the last turn was stopped before an answer; 'anamnesis resume' continues it",
		"failed":      "the last turn ended with an error",
		"stuck":       "the agent kept jumping back to one step, and a user has to decide",
		"limit":       "a limit such as --max-steps ended the turn",
		"unreadable":  "its stream cannot be read; 'anamnesis doctor' says why",
	}[fmt.Sprint(state)]
}

func (s *Server) render(w http.ResponseWriter, r *http.Request, code int, name string, v view) error {
	v.May = door.SessionOf(r).Right
	t := s.pages.whole[name]
	if t == nil {
		return fmt.Errorf("render page %s: no such template", name)
	}
	return write(w, code, t, "layout.html", v)
}

// renderPart answers with a part of a page, a template of parts/, that htmx inserts.
func (s *Server) renderPart(w http.ResponseWriter, name string, data any) error {
	return write(w, http.StatusOK, s.pages.parts, name, data)
}

// write executes the whole template before it sends the first byte, so that a fault can
// still be answered with an error.
func write(w http.ResponseWriter, code int, t *template.Template, name string, data any) error {
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, name, data); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = out.WriteTo(w) // the client has disconnected
	return nil
}

// partOnly reports whether htmx asks for a part of a page.
func partOnly(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

var errNoPage = errors.New("there is no such page here")

// refusal is an error with a status code and a remedy.
type refusal struct {
	code int
	text string // one or two sentences: what, and the remedy
}

func (e *refusal) Error() string { return e.text }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// failCode is the one place where errors become status codes.
func failCode(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.code
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, review.ErrNothingToUndo):
		return http.StatusConflict
	case errors.Is(err, errNoPage), errors.Is(err, knowledgebase.ErrNotFound), errors.Is(err, taskdir.ErrNoTask),
		errors.Is(err, state.ErrNoStep):
		return http.StatusNotFound
	}
	switch exit.Code(err) {
	case exit.Done: // a message waits
		return http.StatusAccepted
	case exit.Usage:
		return http.StatusBadRequest
	case exit.Refused:
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := failCode(err)
	if partOnly(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = fmt.Fprintln(w, term.Clean(err.Error()))
		return
	}
	title := http.StatusText(code)
	if code == http.StatusInternalServerError {
		title = "This cannot be shown" // a file, a disk or git was at fault, not this program
	}
	v := view{Title: title, Body: term.Clean(err.Error())}
	if s.render(w, r, code, "problem", v) != nil {
		http.Error(w, term.Clean(err.Error()), code)
	}
}

// turnAway answers a request without the cookie.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, why string) {
	why = cmp.Or(why, "This browser has not been let in yet.")
	s.fail(w, r, refuse(http.StatusUnauthorized, "%s Open the address that 'anamnesis serve' printed, with its token.",
		why))
}

// The style sheet, the scripts and their licence. htmx is the file
// dist/htmx.min.js of its npm package, unchanged; the version is in its name.
//
//go:embed static
var static embed.FS

// sendStatic answers with a static file. None contains user data.
func (s *Server) sendStatic(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	data, err := static.ReadFile(path.Join("static", name))
	if err != nil {
		return errNoPage
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	return nil
}
