package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"anamnesis/anamnesis/note"
	"anamnesis/cmd/internal/bench/depot"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// agent is the simulated model. It acts only on the messages it is sent, seen through its
// arm's view.
type agent struct {
	p   *Params
	arm *Arm
	pz  *depot.Puzzle // for its words and for judging; the agent does not decide by it
	src depot.Source
	g   *grammar
	w   *writer

	mu     sync.Mutex
	parsed map[said]*reading
	sent   []model.Message // of the request before
	turn   int
	said   map[string]bool // cards the agent has called wrong
	m      Metrics
	// Of an arm that compacts: what replaces the messages after the request, and the
	// first message that is still sent.
	compacted struct {
		summary []model.Message
		from    int
	}
}

// reading is the parsed content of a message, independent of its position.
type reading struct {
	tokens int
	facts  []fact
	mark   string // of its last step mark
	next   string // its last "next:" line
	state  string
	tries  [][]string // what it says of decisions: step, decision, state
	// The ends of its last jump.
	jumpFrom, jumpTo string
}

// said identifies a message's content.
type said struct {
	role       model.Role
	text, args string
}

var _ model.Model = (*agent)(nil)

func newAgent(p *Params, arm *Arm, pz *depot.Puzzle, s depot.Source) *agent {
	return &agent{p: p, arm: arm, pz: pz, src: s, g: newGrammar(), w: newWriter(arm.WriterError, arm.WriterCards, s.At("writer", 0)), parsed: make(map[said]*reading), said: make(map[string]bool)}
}

// Name implements model.Model.
func (a *agent) Name() string { return "simulated" }

// Ask implements model.Model.
func (a *agent) Ask(ctx context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return model.Reply{}, &model.Fault{Kind: model.FaultCanceled, Tries: 1, Err: err}
	}
	switch r.Purpose {
	case model.PurposePass:
		return a.writePass(r)
	case "", model.PurposeStep:
	default:
		return model.Reply{}, &model.Fault{Kind: model.FaultScript, Tries: 1, Err: fmt.Errorf("a simulated agent does not answer %s requests", r.Purpose)}
	}
	msgs := a.arm.View(a, r.Messages)
	size := a.account(msgs)
	reply := a.act(msgs, size)
	a.turn++
	a.m.Steps++
	reply.Finish = "stop"
	if len(reply.Calls) > 0 {
		reply.Finish = "tool_calls"
	}
	out := tokensOf(reply.Text)
	for _, c := range reply.Calls {
		out += tokensOf(c.Name) + tokensOf(c.Args)
	}
	a.m.Output += out
	reply.Usage = op.Usage{Prompt: size, Completion: out}
	return reply, nil
}

// writePass answers for the pass's writer, where the arm has one.
func (a *agent) writePass(r model.Request) (model.Reply, error) {
	if !a.arm.Writer {
		return model.Reply{}, &model.Fault{Kind: model.FaultScript, Tries: 1, Err: errors.New("this arm's pass has no writer: the extractor writes")}
	}
	reply := model.Reply{Text: a.w.write(r.Messages[len(r.Messages)-1].Text), Finish: "stop"}
	prompt := 0
	for _, m := range r.Messages {
		prompt += tokensOf(m.Text)
	}
	reply.Usage = op.Usage{Prompt: prompt, Completion: tokensOf(reply.Text)}
	a.m.Uncached += prompt
	a.m.Output += reply.Usage.Completion
	a.m.PassTokens += prompt + reply.Usage.Completion
	return reply, nil
}

func tokensOf(s string) int { return (len(s) + depot.BytesPerToken - 1) / depot.BytesPerToken }

// account counts the request's tokens. What it shares with the request before,
// byte for byte from the beginning, is cached.
func (a *agent) account(msgs []model.Message) (size int) {
	cached, same := 0, true
	for i, m := range msgs {
		n := a.read(m).tokens
		size += n
		if same && i < len(a.sent) && m.Role == a.sent[i].Role {
			if m.Text == a.sent[i].Text {
				cached += n
				continue
			}
			cached += commonPrefix(m.Text, a.sent[i].Text) / depot.BytesPerToken
		}
		same = false
	}
	a.sent = slices.Clone(msgs)
	a.m.Cached += cached
	a.m.Uncached += size - cached
	a.m.Peak = max(a.m.Peak, size)
	return size
}

func commonPrefix(s, t string) int {
	n := 0
	for n < len(s) && n < len(t) && s[n] == t[n] {
		n++
	}
	return n
}

// read parses a message once.
func (a *agent) read(m model.Message) *reading {
	key := said{role: m.Role, text: m.Text}
	for _, c := range m.Calls {
		key.args += c.Args
	}
	if r := a.parsed[key]; r != nil {
		return r
	}
	r := &reading{tokens: tokensOf(m.Text), facts: a.g.facts(a.g.ownCards(m.Text, a.pz.Project))}
	for _, c := range m.Calls {
		r.tokens += tokensOf(c.Name) + tokensOf(c.Args)
	}
	if all := a.g.mark.FindAllStringSubmatch(m.Text, -1); len(all) > 0 {
		r.mark = all[len(all)-1][1]
	}
	if all := a.g.next.FindAllStringSubmatch(m.Text, -1); len(all) > 0 {
		r.state, r.next = all[len(all)-1][1], all[len(all)-1][2]
	}
	if all := a.g.jump.FindAllStringSubmatch(m.Text, -1); len(all) > 0 {
		r.jumpFrom, r.jumpTo = all[len(all)-1][1], all[len(all)-1][2]
	}
	if m.Role == model.RoleAssistant {
		r.tries = a.g.try.FindAllStringSubmatch(m.Text, 1)
	} else {
		r.tries = a.g.place.FindAllStringSubmatch(m.Text, -1)
	}
	a.parsed[key] = r
	return r
}

// recall draws what the agent attends to in this request.
func (a *agent) recall(msgs []model.Message, size int) beliefs {
	var out beliefs
	seen := make(map[string]int)
	before := 0
	for _, m := range msgs {
		r := a.read(m)
		for _, f := range r.facts {
			key := f.key()
			seen[key]++
			distance := size - before - f.at/depot.BytesPerToken
			src := a.src.At(key, a.turn*1000+seen[key])
			// One draw for a card and a decision: what it says of itself is read once, however
			// often it repeats the claim.
			if f.unsure && a.src.At("check first "+f.card, a.turn).Chance(a.p.Compliance) {
				continue // here the check is to take the option
			}
			if src.Chance(Recall(max(distance, 1), size, a.p.EAS)) {
				out = append(out, f)
			}
		}
		before += r.tokens
	}
	return out
}

// place is the state the agent is in, as it knows it. Finding a literal line is
// what every model does well at any length, so this is not left to chance.
type place struct {
	state, next string
	mark        string // of the step after which it held
}

// where finds the present situation: the last output, or the one that the step
// of a later jump ended with.
func (a *agent) where(msgs []model.Message) place {
	for i, m := range slices.Backward(msgs) {
		r := a.read(m)
		if m.Role == model.RoleUser && r.jumpTo != "" {
			if r.next != "" && r.jumpTo == "0" {
				return place{r.state, r.next, "0"}
			}
			return a.placeOf(msgs[:i], r.jumpTo)
		}
		if r.next != "" {
			return place{r.state, r.next, a.markFrom(msgs[i:])}
		}
		if m.Role == model.RoleTool && m.Name == bashTool && strings.Contains(m.Text, "[exit ") {
			return place{} // an output that shows nothing; one without an exit did not run
		}
	}
	return place{}
}

// placeOf is the situation at the end of the step with that mark.
func (a *agent) placeOf(msgs []model.Message, step string) place {
	for i, m := range slices.Backward(msgs) {
		if r := a.read(m); r.mark == step {
			for _, m := range slices.Backward(msgs[:i+1]) {
				if r := a.read(m); r.next != "" {
					return place{r.state, r.next, step}
				}
				if m.Role == model.RoleTool {
					break
				}
			}
			break
		}
	}
	return place{}
}

// markFrom is the first step mark from a message on.
func (a *agent) markFrom(msgs []model.Message) string {
	for _, m := range msgs {
		if r := a.read(m); r.mark != "" {
			return r.mark
		}
	}
	return "0"
}

// act decides what to do.
func (a *agent) act(msgs []model.Message, size int) model.Reply {
	switch {
	case a.m.Steps >= a.p.MaxSteps:
		a.m.GaveUp = "steps"
		return model.Reply{Text: "I stop here: no steps are left."}
	case a.m.price() > float64(a.p.Budget):
		a.m.GaveUp = "tokens"
		return model.Reply{Text: "I stop here: no tokens are left."}
	}
	at := a.where(msgs)
	name, rest, _ := strings.Cut(at.next, " ")
	if last := a.last(msgs); strings.HasPrefix(last, guarded) && name == "npm" {
		// The guard's word that the call failed before is as good as its error; where
		// it succeeded it is made in other words, as the guard suggests.
		if strings.Contains(last, "(it failed)") {
			return a.deadEnd(msgs, size, at.state, "")
		}
		return a.bash("It has to be made again here.", at.next+depot.Again)
	}
	switch {
	case at.next == "":
		return a.bash("I look where things stand.", fmt.Sprintf("npm test status %d", a.turn))
	case strings.Contains(a.last(msgs), "check passed"):
		a.m.Solved = true
		return model.Reply{Text: "The project is repaired: npm test check passes."}
	case name == "nothing:":
		a.m.GaveUp = "locked"
		return model.Reply{Text: "I cannot go on: the licence server is locked."}
	case at.next == "dead end":
		return a.deadEnd(msgs, size, at.state, "")
	case name == "decision":
		return a.decide(msgs, size, at, rest)
	case name == "curl":
		cmd, stage, _ := strings.Cut(at.next, " (once for all is enough), then ")
		if !strings.Contains(a.last(msgs), "licence activated") && !a.recall(msgs, size).active() {
			return a.bash("", cmd)
		}
		return a.bash("A licence is active.", stage)
	}
	if at.next == "npm test check" {
		return a.bash(strings.TrimSpace(a.dispute(a.recall(msgs, size), at.state)), at.next)
	}
	return a.bash("", at.next)
}

// bashTool is the name of the tool that runs commands.
const bashTool = "Bash"

// guarded begins the result of a call that the product's guard did not run
// because it was made twice in the same state of the files.
const guarded = "Not run: this same "

// last is the text of the last message.
func (a *agent) last(msgs []model.Message) string { return msgs[len(msgs)-1].Text }

func (a *agent) bash(text, command string) model.Reply {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err) // two strings
	}
	return model.Reply{Text: text, Calls: []op.Call{{ID: fmt.Sprintf("c%d", a.turn), Name: bashTool, Args: string(args)}}}
}

// decide takes an option: the one it likes best of those it does not avoid.
func (a *agent) decide(msgs []model.Message, size int, at place, rest string) model.Reply {
	name, list, _ := strings.Cut(rest, ": one of ")
	options := strings.Fields(list)
	known := a.recall(msgs, size)
	src := a.src.At("decide "+name, a.turn)
	liking := func(o string) float64 {
		return (1-a.p.Whim)*a.src.At("habit "+name+" "+o, 0).Float() + a.p.Whim*src.At(o, 0).Float()
	}
	slices.SortFunc(options, func(x, y string) int { return cmp.Compare(liking(y), liking(x)) })
	if o := known.worked(name, at.state); slices.Contains(options, o) && src.At("follow", 0).Chance(a.p.Compliance) {
		options = append([]string{o}, slices.DeleteFunc(options, func(other string) bool { return other == o })...)
	}
	heeds := func(o string) bool { return src.At("heed "+o, 1).Chance(a.p.Compliance) }
	pick, avoided := "", []string(nil)
	for _, o := range options {
		if (known.failed(name, o, at.state) || !known.hinted(name, o)) && heeds(o) {
			avoided = append(avoided, o)
			continue
		}
		if pick == "" {
			pick = o
		}
	}
	if pick == "" && src.At("oldest", 0).Chance(a.p.Compliance) {
		pick = known.oldest(name, at.state, avoided)
	}
	a.judge(name, at.state, pick, avoided)
	if pick == "" && at.state != depot.FreshTree {
		return a.deadEnd(msgs, size, at.state, "no "+name+" works on it")
	}
	if pick == "" {
		pick = options[0]
	}
	text := fmt.Sprintf("At step %s, decision %s with %s: trying %s.", at.mark, name, at.state, pick)
	return a.bash(text+a.dispute(known, at.state), "npm test choose "+name+" "+pick)
}

// dispute says which of the recalled cards the present state shows to be wrong: its
// last choice leads on, and they call it refused.
func (a *agent) dispute(known beliefs, state string) (text string) {
	choices := strings.Split(state, ",")
	decision, option, _ := strings.Cut(choices[len(choices)-1], "=")
	prefix := cmp.Or(strings.Join(choices[:len(choices)-1], ","), depot.FreshTree)
	for _, f := range known {
		wrong := f.kind == factRefused && f.card != "" && f.decision == decision && f.option == option && f.state == prefix
		if wrong && !a.said[f.card] && a.src.At("dispute "+f.card, a.turn).Chance(a.p.Compliance) {
			a.said[f.card] = true
			text += " lesson " + f.card + " does not hold."
		}
	}
	return text
}

// judge counts whether the agent wrongly left out the option that leads on. It
// measures and decides nothing.
func (a *agent) judge(name, state, pick string, avoided []string) {
	for k, d := range a.pz.Decisions {
		if d.Name != name {
			continue
		}
		var right []string
		for _, e := range a.pz.Decisions[:k] {
			right = append(right, e.Right)
		}
		if a.pz.State(right) != state {
			return // nothing is right here
		}
		a.m.Chances++
		if pick != d.Right && slices.Contains(avoided, d.Right) {
			a.m.Suppressed++
		}
	}
}

// deadEnd leaves a path: by a jump where the arm has them, else by undoing.
// why is set when the agent concluded it from the options it knows.
func (a *agent) deadEnd(msgs []model.Message, size int, state, why string) model.Reply {
	choices := strings.Split(state, ",")
	decision, option, _ := strings.Cut(choices[len(choices)-1], "=")
	prefix := cmp.Or(strings.Join(choices[:len(choices)-1], ","), depot.FreshTree)
	text := "Dead end: " + a.say(decision, option, prefix)
	if why != "" {
		text += ": " + why
	}
	text += "."
	if !a.arm.Jumps {
		return a.bash(text, "npm test undo")
	}
	reason := text
	if a.arm.Mail {
		reason = a.mail(text, msgs, size)
	}
	args, err := json.Marshal(map[string]any{"step_id": a.stepOf(msgs, decision, prefix), "reason": reason})
	if err != nil {
		panic(err) // an integer and a string
	}
	return model.Reply{Text: text, Calls: []op.Call{{ID: fmt.Sprintf("c%d", a.turn), Name: "jump_to_step", Args: string(args)}}}
}

// say is a failure in the agent's own words: not always with its state.
func (a *agent) say(decision, option, state string) string {
	if !a.src.At("care "+decision+option+state, a.turn).Chance(a.p.Care) {
		state = ""
	}
	return depot.Refusal(decision, option, state)
}

// mail is what a D-Mail says: the conclusion and everything else the agent
// recalls just then, up to the cap.
func (a *agent) mail(text string, msgs []model.Message, size int) string {
	seen := make(map[string]bool)
	for _, f := range a.recall(msgs, size) {
		key := f.key()
		if seen[key] {
			continue
		}
		seen[key] = true
		line := ""
		switch f.kind {
		case factRefused:
			line = "Also: " + a.say(f.decision, f.option, f.state) + "."
		case factHint:
			line = "Also: " + f.decision + " must be one of " + f.pair[0] + " or " + f.pair[1] + "."
		case factActive:
			line = "Also: licence activated already."
		}
		if tokensOf(text+"\n"+line) > note.BlockCap(a.p.EAS) {
			break
		}
		text += "\n" + line
	}
	return text
}

// stepOf is the step at which a decision was open, 0 where nothing says so.
func (a *agent) stepOf(msgs []model.Message, decision, state string) int {
	for _, m := range slices.Backward(msgs) {
		for _, t := range slices.Backward(a.read(m).tries) {
			var n int
			if t[2] != decision || t[3] != state {
				continue
			}
			if _, err := fmt.Sscan(t[1], &n); err == nil {
				return n
			}
		}
	}
	return 0
}
