package page

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"anamnesis/cmd/internal/page/picture"
	"anamnesis/opstream/op"
)

// TestOpensAtWhatMatters: a task's page shows the last jump at once, each step's operations
// behind its calls, what a failed command printed, and how large the requests are.
func TestOpensAtWhatMatters(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	exit := 3
	w.call("WriteFile", "written")
	w.add(
		&op.ModelAsked{LastSeq: 9, Tokens: 900},
		&op.ModelReplied{Calls: []op.Call{{ID: "f", Name: "Bash", Args: `{"command":"go <test>"}`}},
			Finish: "tool_calls"},
		&op.ToolCalled{Call: "f", Name: "Bash", Args: `{"command":"go <test>"}`},
		&op.ToolReturned{
			Call: "f", Name: "Bash", Text: strings.Repeat("early\n", 40) + "FAIL 1\rFAIL <b>\r\n", Exit: &exit,
			IsError: true,
		},
	)
	w.save()
	w.jump(1, "it was <wrong>")
	page := s.get(t, "/tasks/task_1")
	wantIn(t, "the page", page, `<div id="auto"><h2 tabindex="-1" id="opened">The last jump</h2>`,
		"jump from step 2 to step 1: 2 files changed", `<li class="mono">delete new.go</li><li class="mono">write old.go</li>`, "it was &lt;wrong&gt;",
		`<span id="group-2"><span class="n">step 2</span> <span class="unseen">left</span> <span class="what left">Bash(go &lt;test&gt;)</span>`,
		"early\nFAIL &lt;b&gt;</pre>")
	if n := strings.Count(page, "<details open"); n != 1 {
		t.Errorf("%d steps are open, want the newest", n)
	}
	_, shown, _ := strings.Cut(page, `<pre class="failed"`)
	shown, _, _ = strings.Cut(shown, "</pre>")
	if n := strings.Count(shown, "\n") + 1; n != picture.FailedLines {
		t.Errorf("%d lines of the output are shown", n)
	}
	w.call("Bash", "on")
	wantIn(t, "the page", s.get(t, "/tasks/task_1"),
		"Last request 103 tokens, 2 % of the EAS of 4000, window 128000. 3 requests, at most 900 tokens.")
	wantIn(t, "the step", s.get(t, "/tasks/task_1/steps/2"), "What failed", "FAIL &lt;b&gt;</pre>")
}

// TestAfterTheTurn: what follows a turn's end belongs to no step; once the next request begins
// the step, its answer stands for it.
func TestAfterTheTurn(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call("Bash", "x")
	seq := w.add(&op.TurnEnded{Reason: "interrupted"})
	wantIn(t, "the page", s.get(t, "/tasks/task_1"),
		`<span class="n">after step 1</span> <span class="what">interrupted</span>`)
	if text := s.get(t, fmt.Sprintf("/tasks/task_1/ops/%d", seq)); strings.Contains(text, "/steps/2") ||
		!strings.Contains(text, "after the last step") {
		t.Errorf("the operation leads to a step that does not exist:\n%s", text)
	}
	w.add(&op.UserSaid{Text: "And now?", Source: op.SourceRequest}, &op.ModelAsked{LastSeq: seq + 1, Tokens: 9},
		&op.ModelReplied{Text: "All is well.", Finish: "stop"})
	for range 2 { // while the step is under way, and once it has ended
		wantIn(t, "the page", s.get(t, "/tasks/task_1"),
			`<span class="n">step 2</span> <span class="what">All is well.</span>`)
		w.save()
	}
}

// TestAutoFollows: the detail that a page opens by itself follows the task.
func TestAutoFollows(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call("Bash", "x")
	page := s.get(t, "/tasks/task_1")
	wantIn(t, "the page", page, `<div id="auto"><h2 tabindex="-1" id="opened">Step 1</h2>`)
	url := nextOf(t, page)
	w.jump(0, "back")
	wantIn(t, "the news", s.get(t, url, asPart),
		`<div id="auto" hx-swap-oob="innerHTML"><h2 tabindex="-1" id="opened">The last jump</h2>`)
}

// addField adds lines to a card's header by the page's form.
func (s *site) addField(t *testing.T, id, lines string) {
	t.Helper()
	text, seen := s.text(t, id)
	with := strings.Replace(text, "id: "+id+"\n", "id: "+id+"\n"+lines, 1)
	if got := s.ask(t, "POST", "/cards/"+id+"/edit", form("seen", seen, "text", with)); got.code != 303 {
		t.Fatalf("%d\n%s", got.code, got.text)
	}
}

// TestDecideBetween: a card is shown beside one that it contradicts, with one form to keep
// each.
func TestDecideBetween(t *testing.T) {
	s := openSite(t)
	s.addCard(t, "ours", "topic of ours")
	s.addCard(t, "theirs", "topic of theirs")
	s.addField(t, "theirs", "contradicts: [ours]\n")
	page := s.get(t, "/review/theirs")
	wantIn(t, "the page", page, `data-key="m">Drop this one <kbd>m</kbd>`, `data-key="o">Keep this one <kbd>o</kbd>`)
	bySeen := regexp.MustCompile(`name="by" value="ours"><input type="hidden" name="by_seen" value="([0-9a-f]+)"`).FindStringSubmatch(page)
	if bySeen == nil {
		t.Fatalf("no form names the other card:\n%s", page)
	}
	_, seen := s.text(t, "theirs")
	got := s.ask(t, "POST", "/cards/theirs/decide",
		form("act", "supersede", "seen", seen, "from", "review", "by", "ours", "by_seen", bySeen[1], "turned", "yes"))
	if got.code != 303 || !strings.HasPrefix(got.header.Get("Location"), "/review/theirs") {
		t.Fatalf("%d to %s\n%s", got.code, got.header.Get("Location"), got.text)
	}
	if s.state(t, "ours") != "superseded" || s.state(t, "theirs") != "draft" {
		t.Errorf("ours is %s and theirs %s", s.state(t, "ours"), s.state(t, "theirs"))
	}
	if page := s.get(t, "/review/theirs"); strings.Contains(page, "Keep one of the two") {
		t.Error("the page asks again for what is decided")
	}
}
