//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"anamnesis/anamnesis"
	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/openai"
	"anamnesis/orchestrator/model/price"
	"anamnesis/orchestrator/model/script"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/search"
)

// version is recorded in every stream the program writes.
const version = "0.1.0"

const scriptPrefix = "script:"

// home is where this process keeps everything.
func (a *app) home() (orchestrator.Home, error) {
	h, err := orchestrator.FindHome(a.getenv)
	if err != nil {
		return h, usageError("%v", err)
	}
	return h, nil
}

// modelChoice is a model with what a stream records of it.
type modelChoice struct {
	model   model.Model
	name    string // as recorded: a name, or script:FILE
	lookup  string // what to look up in the EAS table
	baseURL string
	banner  string // said first when it is a recording
	retries *retryNotice
	reflect model.Model // answers as the Reflect-Agent; nil: model does

	price    *price.Price // nil: not known
	unpriced []string     // models whose price is not known
}

// retryNotice lets a model that was made first tell a printer that was made
// later that it asks again.
type retryNotice struct {
	mu   sync.Mutex
	tell func(model.Attempt)
}

func (n *retryNotice) set(tell func(model.Attempt)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell = tell
}

func (n *retryNotice) on(at model.Attempt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tell != nil {
		n.tell(at)
	}
}

// retrying wraps a model so that passing faults are asked about again.
func retrying(m model.Model) (model.Model, *retryNotice) {
	n := new(retryNotice)
	return model.Retry(m, &model.RetryOptions{OnRetry: n.on}), n
}

// chooseModels finds the model a run asks, and the Reflect-Agent's where one is
// named.
func (a *app) chooseModels(ctx context.Context, f agentFlags, name, baseURL string) (modelChoice, error) {
	m, err := a.chooseModel(ctx, name, baseURL, f.images)
	if err != nil || f.reflectModel == "" {
		return m, err
	}
	r, err := a.chooseModel(ctx, f.reflectModel, baseURL, "")
	m.reflect, m.unpriced = r.model, append(m.unpriced, r.unpriced...)
	m.banner = strings.TrimSpace(m.banner + "\n" + r.banner)
	return m, err
}

// chooseModel finds the model a run asks. Nothing is guessed silently: with
// neither key nor address a local Ollama is looked for, and otherwise two
// lines say what to set.
//
// Its replies say what they cost, where the table of prices has the model.
func (a *app) chooseModel(ctx context.Context, name, baseURL, images string) (modelChoice, error) {
	m, err := a.findModel(ctx, name, baseURL, images)
	if err != nil {
		return m, err
	}
	h, err := a.home()
	if err != nil {
		return m, err
	}
	table, err := price.Load(h.Prices())
	if err != nil {
		return m, usageError("%v", err)
	}
	if p, ok := table.Lookup(m.lookup); ok {
		m.price, m.model = &p, price.Model(m.model, p)
	} else {
		m.unpriced = append(m.unpriced, m.lookup)
	}
	return m, nil
}

// costKnown refuses a budget of money that could not be kept.
func (a *app) costKnown(f agentFlags, m modelChoice) error {
	if f.maxCost <= 0 || len(m.unpriced) == 0 {
		return nil
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	return usageError("--max-cost: no price is known for %s; add a row to %s (docs/costs.md has the form), or bound --max-tokens instead", strings.Join(m.unpriced, " and "), h.Prices())
}

// findModel is chooseModel without prices.
func (a *app) findModel(ctx context.Context, name, baseURL, images string) (modelChoice, error) {
	if path, ok := strings.CutPrefix(name, scriptPrefix); ok {
		return scriptChoice(path)
	}
	key := a.getenv("OPENAI_API_KEY")
	if baseURL == "" {
		baseURL = a.getenv("OPENAI_BASE_URL")
	}
	if key == "" && baseURL == "" {
		url, names, ok := openai.Detect(ctx)
		if !ok || (name == "" && len(names) == 0) {
			return modelChoice{}, usageError("no model: set OPENAI_API_KEY, or OPENAI_BASE_URL (--base-url) for any OpenAI-compatible server, and name the model with --model;\n" +
				"or start Ollama on 127.0.0.1:11434 with a model pulled. 'anamnesis demo' needs neither.")
		}
		baseURL = url
		if name == "" {
			name = names[0]
		}
	}
	if name == "" {
		return modelChoice{}, usageError("no model named: add --model NAME (for example --model gpt-5)")
	}
	client, err := openai.New(openai.Options{BaseURL: baseURL, Key: key, Model: name, Images: openai.Images(images)})
	if err != nil {
		return modelChoice{}, usageError("%v", err)
	}
	wrapped, notice := retrying(client)
	return modelChoice{model: wrapped, name: name, lookup: name, baseURL: baseURL, retries: notice}, nil
}

func scriptChoice(path string) (modelChoice, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return modelChoice{}, usageError("script %s: %v", path, err)
	}
	m, err := script.Load(abs)
	if err != nil {
		return modelChoice{}, usageError("%v", err)
	}
	lookup := m.EASModel()
	if lookup == "" {
		lookup = m.Name()
	}
	wrapped, notice := retrying(m)
	return modelChoice{model: wrapped, name: scriptPrefix + abs, lookup: lookup, banner: m.Banner(), retries: notice}, nil
}

// easFor looks a model up for a task in a directory.
func easFor(h orchestrator.Home, dir, lookup string) (anamnesis.Span, error) {
	table, err := loadEAS(h.EASOverlay(), easProjectFile(dir))
	if err != nil {
		return anamnesis.Span{}, err
	}
	return table.Lookup(lookup), nil
}

// approvalMode resolves the flag: without a terminal nobody can be asked.
func (a *app) approvalMode(flag string) (mode, notice string, err error) {
	if flag != "" {
		m, err := guard.ParseMode(flag)
		if err != nil {
			return "", "", usageError("--approval: %v", err)
		}
		if m == guard.ModeAsk && !a.interactive() {
			return string(m), "approval mode ask without a terminal: nobody is there to answer, so calls that need approval are refused; --approval auto lets them run", nil
		}
		return string(m), "", nil
	}
	if a.interactive() {
		return string(guard.ModeAsk), "", nil
	}
	return string(guard.ModeDeny), "approval mode is deny: there is no terminal to ask at; --approval edits or --approval auto lets calls run", nil
}

// interactive says whether a person sits at the terminal.
func (a *app) interactive() bool {
	in, ok := a.stdin.(*os.File)
	out, ok2 := a.stderr.(*os.File)
	return ok && ok2 && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// styled is standard output with colours where the terminal shows them and
// NO_COLOR is not set.
func (a *app) styled() io.Writer {
	return colorprofile.NewWriter(a.stdout, os.Environ())
}

// width is the terminal's, or what fits most screens and logs.
func (a *app) width() int {
	for _, w := range []io.Writer{a.stdout, a.stderr} {
		if f, ok := w.(*os.File); ok {
			if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
				return cols
			}
		}
	}
	return 120
}

// runTask runs one turn of an open task with everything a person at a
// terminal expects: steering by typed lines, approval questions, the socket.
func (a *app) runTask(ctx context.Context, t *orchestrator.Task, h orchestrator.Home, lines *lineReader, p view.Printer) error {
	if err := a.tellSandbox(ctx, t); err != nil {
		return err
	}
	if lines != nil {
		lines.steer(func(line string) {
			if err := t.Say(ctx, line, op.SourceSteer); err != nil {
				fmt.Fprintf(a.stderr, "anamnesis: %v\n", err)
			}
		})
	}
	if lines != nil {
		defer lines.steer(nil)
	}
	var last orchestrator.Outcome
	for {
		out, err := a.runServed(ctx, t, h)
		if err != nil {
			return err
		}
		if out.Reason != "idle" || last.Reason == "" {
			last = out
		}
		again := out.Reason == "done" || out.Reason == "limit" || out.Reason == "idle"
		if again && ctx.Err() == nil && t.Unanswered() {
			continue // words, or a jump, came in between the turn's end and the socket's
		}
		p.End(last, t.State())
		return outcomeError(t.ID, last)
	}
}

// tellSandbox says once what a sandbox cannot hold in on this machine.
func (a *app) tellSandbox(ctx context.Context, t *orchestrator.Task) error {
	box, err := t.Sandbox(ctx)
	if ctx.Err() != nil {
		return nil // the turn ends as interrupted
	}
	for _, m := range box.Missing() {
		fmt.Fprintf(a.stderr, "anamnesis: %s; --sandbox off says that this is known\n", m)
	}
	return err
}

// runServed runs a turn while the task's socket takes commands. Without a
// socket the task runs all the same.
func (a *app) runServed(ctx context.Context, t *orchestrator.Task, h orchestrator.Home) (orchestrator.Outcome, error) {
	stop, err := t.Serve(ctx, h)
	if err != nil {
		fmt.Fprintf(a.stderr, "anamnesis: warning: %v; 'say' and 'jump' cannot reach the task while it runs\n", err)
		return t.Run(ctx)
	}
	defer stop()
	return t.Run(ctx)
}

// outcomeError turns the end of a turn into the process's exit.
func outcomeError(task string, out orchestrator.Outcome) error {
	again := fmt.Sprintf("'anamnesis resume %s' goes on", task)
	var fault *model.Fault
	if errors.As(out.Err, &fault) && (fault.Status == 401 || fault.Status == 403 || fault.Status == 404) {
		return usageError("task %s: %v; set the key, the address and the model's name right, then %s", task, out.Err, again)
	}
	switch out.Reason {
	case "done", "idle":
		return nil
	case "interrupted":
		return &exitError{exitInterrupted, fmt.Errorf("task %s: interrupted; %s", task, again)}
	case "limit":
		return &exitError{exitLimit, fmt.Errorf("task %s: stopped by a limit: %s; %s", task, out.Detail, again)}
	case "stuck":
		return &exitError{exitStuck, fmt.Errorf("task %s: stuck: %s", task, out.Detail)}
	}
	if out.Err != nil {
		return fmt.Errorf("task %s: %w; %s", task, out.Err, again)
	}
	return fmt.Errorf("task %s: %s; %s", task, out.Detail, again)
}

// taskOptions are a task's surroundings in this process.
func (a *app) taskOptions(f agentFlags, m modelChoice, approval string, p view.Printer, lines *lineReader) (orchestrator.Options, error) {
	more, err := builtin.OptIn(f.tools...)
	if err != nil {
		return orchestrator.Options{}, usageError("--tools: %v", err)
	}
	h, err := a.home()
	if err != nil {
		return orchestrator.Options{}, err
	}
	net, err := a.webOptions(h)
	if err != nil {
		return orchestrator.Options{}, err
	}
	tools, err := tool.NewRegistry(append(builtin.Tools(&builtin.Options{
		File:   file.Options{AllowSecrets: f.secrets},
		Search: search.Options{AllowSecrets: f.secrets},
		Web:    net,
	}), more...)...)
	if err != nil {
		return orchestrator.Options{}, err
	}
	embedder, err := a.embedder()
	if err != nil {
		return orchestrator.Options{}, err
	}
	m.retries.set(p.Retry)
	o := orchestrator.Options{
		Embedder: embedder,
		Model:    m.model, Reflect: m.reflect, Tools: tools, Approval: approval, Program: "anamnesis " + version,
		Sandbox:     guard.Confinement(f.sandbox),
		Limits:      orchestrator.Limits{Steps: f.maxSteps, Tokens: f.maxTokens, USD: f.maxCost, EarlierUSD: f.earlierCost, Time: f.maxTime},
		Secrets:     a.taskSecrets(f.dir, f.redact),
		Event:       p.Op,
		Delta:       p.Delta,
		Progress:    p.Progress,
		Scan:        a.firstScan(),
		AfterAppend: a.afterAppend, WorldHook: a.worldHook, SealAfter: a.sealAfter, CheckpointEvery: a.checkpointEvery,
	}
	if lines != nil {
		o.Approve, o.Ask = lines.approve, lines.ask
	}
	return o, nil
}

// lineReader shares the terminal's lines between steering and questions: a
// line answers the question that is open, and steers otherwise.
type lineReader struct {
	mu       sync.Mutex
	out      io.Writer
	question chan string // open question, nil otherwise
	ended    bool        // no line will come any more
	say      func(string)
	pending  []string // typed before the task was open
}

func newLineReader(in io.Reader, out io.Writer) *lineReader {
	l := &lineReader{out: out}
	go func() { // ends with the process: a terminal's read cannot be called back
		sc := bufio.NewScanner(in)
		sc.Buffer(make([]byte, 0, 64<<10), 1<<20)
		for sc.Scan() {
			l.line(strings.TrimSpace(sc.Text()))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = true
		if l.question != nil {
			close(l.question)
			l.question = nil
		}
	}()
	return l
}

func (l *lineReader) line(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.question != nil:
		l.question <- s
		l.question = nil
	case s == "":
	case l.say != nil:
		l.say(s)
	default:
		l.pending = append(l.pending, s)
	}
}

func (l *lineReader) steer(say func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say = say
	if say == nil {
		return
	}
	for _, s := range l.pending {
		say(s)
	}
	l.pending = nil
}

// approve asks the person about one call: y, a (all of this task), or n with
// a word to the model.
func (l *lineReader) approve(ctx context.Context, c op.Call) orchestrator.Answer {
	answer := make(chan string, 1)
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return orchestrator.Answer{Feedback: ""}
	}
	l.question = answer
	fmt.Fprintf(l.out, "\n? %s\n%s\n  y (yes), t (exactly this, for the task), a (all in this task), anything else is a no and the reason why: ", view.Line(c.Name, 80), view.Clean(prettyArgs(c.Args)))
	l.mu.Unlock()
	select {
	case <-ctx.Done():
		return orchestrator.Answer{Feedback: ""}
	case s := <-answer:
		return parseAnswer(s)
	}
}

// ask puts a question of the program to the person; false: no answer came.
func (l *lineReader) ask(ctx context.Context, question string) (string, bool) {
	answer := make(chan string, 1)
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return "", false
	}
	l.question = answer
	fmt.Fprintf(l.out, "\n? %s\n  your answer (empty ends the turn): ", view.Clean(question))
	l.mu.Unlock()
	select {
	case <-ctx.Done():
		return "", false
	case s, ok := <-answer:
		return s, ok && s != ""
	}
}

// prettyArgs shows a call's arguments one a line, texts as they will be used.
func prettyArgs(args string) string {
	var m map[string]any
	if json.Unmarshal([]byte(args), &m) != nil {
		return "  " + args
	}
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text, ok := m[k].(string)
		if !ok {
			data, err := json.Marshal(m[k])
			if err != nil {
				return "  " + args
			}
			text = string(data)
		}
		lines = append(lines, "  "+k+": "+strings.ReplaceAll(text, "\n", "\n    "))
	}
	return strings.Join(lines, "\n")
}

// parseAnswer allows on an exact key only; whatever else was typed is a no, with
// the words kept for the model.
func parseAnswer(s string) orchestrator.Answer {
	switch s = strings.TrimSpace(s); strings.ToLower(s) {
	case "y", "yes":
		return orchestrator.Answer{Allow: true}
	case "t", "task":
		return orchestrator.Answer{Allow: true, Same: true}
	case "a", "all":
		return orchestrator.Answer{Allow: true, ForTask: true}
	case "n", "no", "":
		return orchestrator.Answer{}
	}
	if rest, ok := strings.CutPrefix(s, "n "); ok {
		s = strings.TrimSpace(rest)
	}
	return orchestrator.Answer{Feedback: s}
}
