package page

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/cmd/internal/page/picture"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// maxPageBytes is how large a page of a task may be, whatever the task.
const maxPageBytes = 400 << 10

// long writes a task of many operations at once: steps of five, with a jump back
// of ten steps after each thirtieth.
func (w *stream) long(ops int) {
	w.t.Helper()
	var entries []opstream.Entry
	put := func(bodies ...op.Body) {
		for _, b := range bodies {
			entries = append(entries, entryOf(w.t, w.step, b))
		}
	}
	last, _ := w.log.Last()
	for int(last)+len(entries) < ops-3 {
		id := fmt.Sprint("c", w.step)
		text := fmt.Sprintf("<b>%d</b> ", w.step) + strings.Repeat("a long line of output & more ", 12)
		put(&op.ModelAsked{LastSeq: last, Tokens: 100 + w.step%50*100},
			&op.ModelReplied{
				Text: text, Calls: []op.Call{{ID: id, Name: "Bash", Args: `{"command":"go test ./..."}`}},
				Finish: "tool_calls",
			},
			&op.ToolCalled{Call: id, Name: "Bash", Args: `{"command":"go test ./..."}`},
			&op.ToolReturned{Call: id, Name: "Bash", Text: text},
			&op.WorldSaved{
				Parent: w.parent, Commit: fmt.Sprintf("%040x", w.step), Tree: fmt.Sprintf("%040x", w.step),
				Complete: true,
			})
		w.parent = w.step
		if w.step++; w.step%30 == 0 {
			to := w.parent - 10
			put(&op.PassDone{Trigger: "person", Block: "b", Cards: []string{"c"}},
				&op.JumpIntended{From: w.parent, To: to, Reason: text, By: "person", Backward: true},
				&op.JumpDone{From: w.parent, To: to, Backward: true})
			w.parent = to
		}
	}
	for chunk := range slices.Chunk(entries, 1000) {
		if _, err := w.log.Append(w.t.Context(), chunk...); err != nil {
			w.t.Fatal(err)
		}
	}
	for last, _ := w.log.Last(); last < uint64(ops); last++ {
		w.add(&op.NoticeGiven{Text: "to the full number"})
	}
}

// TestTenThousandOps: the page of a long task is small, names the part it shows, and its links
// lead through all parts.
func TestTenThousandOps(t *testing.T) {
	s := openSite(t)
	newTask(t, s, "task_1").long(10_000)
	page := s.get(t, "/tasks/task_1")
	if len(page) > maxPageBytes {
		t.Errorf("the page has %d bytes, at most %d are allowed", len(page), maxPageBytes)
	}
	t.Logf("%d bytes", len(page))
	wantIn(t, "the page", page, "Operations 9801 to 10000 of 10000.", "jumps are out of sight", `aria-current="step"`)
	if n := len(shownOps(page)); n != opsShown {
		t.Errorf("%d operations are listed, not %d", n, opsShown)
	}
	walk := func(page, link, stop string) (pages int) {
		t.Helper()
		for ; !strings.Contains(page, stop); pages++ {
			m := regexp.MustCompile(`<a href="([^"#]+)#[a-z]+-h">` + link + `</a>`).FindStringSubmatch(page)
			if m == nil || pages > 60 {
				t.Fatalf("no way to %q after %d pages", stop, pages)
			}
			if page = s.get(t, strings.ReplaceAll(m[1], "&amp;", "&")); len(page) > maxPageBytes {
				t.Fatalf("page %d has %d bytes", pages, len(page))
			}
		}
		return pages
	}
	if n := walk(page, "before", "Operations 1 to 200 of"); n != 49 {
		t.Errorf("%d pages back to the first operation", n)
	}
	walk(s.get(t, "/tasks/task_1?ops=1"), "after", "Operations 9801 to 10000 of")
	walk(page, "earlier rows", `id="step-0"`)
	walk(s.get(t, "/tasks/task_1?row=0"), "later rows", `aria-current="step"`)
	if text := s.get(t, "/tasks/task_1/ops/9990/context"); len(text) > maxPageBytes {
		t.Errorf("the context has %d bytes", len(text))
	}
}

// TestLargeTexts: a huge operation and a huge message are shown in part, with the number of
// bytes left out.
func TestLargeTexts(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call("Bash", strings.Repeat("<&>", 1<<18))
	for _, path := range []string{"/tasks/task_1", "/tasks/task_1/ops/7", "/tasks/task_1/ops/7/context", "/tasks/task_1/steps/1"} {
		if page := s.get(t, path); len(page) > 2*maxPageBytes {
			t.Errorf("%s has %d bytes", path, len(page))
		}
	}
	wantIn(t, "the operation", s.get(t, "/tasks/task_1/ops/7"), fmt.Sprintf("%d more bytes", 3<<18-opTextBytes))
	wantIn(t, "the context", s.get(t, "/tasks/task_1/ops/7/context"), "more bytes in the operation")
}

// TestLists: in any part of any tree, lists are closed in the order in which they were
// opened, entries are in lists and lists in entries, and each step occurs once.
func TestLists(t *testing.T) {
	p, err := parsePages()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		nodes := []timeline.Node{{Step: 0, ParentRow: -1}}
		for range rapid.IntRange(0, 30).Draw(rt, "rows") {
			lane := rapid.IntRange(0, min(nodes[len(nodes)-1].Lane+1, 20)).Draw(rt, "lane")
			nodes = append(nodes,
				timeline.Node{Step: len(nodes), Parent: rapid.IntRange(0, len(nodes)-1).Draw(rt, "parent"), Lane: lane})
		}
		from := rapid.IntRange(0, len(nodes)-1).Draw(rt, "from")
		v := treeView{Path: "/tasks/t"}
		v.Branches = picture.Branches(nodes[from:])
		var out strings.Builder
		if err := p.parts.ExecuteTemplate(&out, "tree", v); err != nil {
			rt.Fatal(err)
		}
		balanced(rt, out.String(), len(nodes)-from)
	})
}

func balanced(rt *rapid.T, html string, steps int) {
	var open []string
	count := 0
	for _, tag := range regexp.MustCompile(`</?(ol|li)\b`).FindAllString(html, -1) {
		top := ""
		if len(open) > 0 {
			top = open[len(open)-1]
		}
		name := strings.TrimLeft(tag, "</")
		switch {
		case tag[1] == '/' && name != top:
			rt.Fatalf("%s> ends <%s> in\n%s", tag, top, html)
		case tag[1] == '/':
			open = open[:len(open)-1]
		case name == "li" && top != "ol", name == "ol" && top == "ol":
			rt.Fatalf("<%s> stands in <%s> in\n%s", name, top, html)
		default:
			open = append(open, name)
			if name == "li" {
				count++
			}
		}
	}
	if len(open) > 0 || count != steps {
		rt.Fatalf("%v stay open, %d entries for %d steps in\n%s", open, count, steps, html)
	}
}
