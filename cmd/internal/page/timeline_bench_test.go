package page

import (
	"fmt"
	"testing"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
)

// BenchmarkTimeline opens the timeline of a task of 100 steps and of one of 10,000: on a
// terminal, as a page of a server that has just started, and as a page that is reloaded.
func BenchmarkTimeline(b *testing.B) {
	for _, steps := range []int{100, 10_000} {
		s := openSite(b)
		newTask(b, s, "task_1").long(steps * 5)
		b.Run(fmt.Sprintf("terminal/%d", steps), func(b *testing.B) {
			for b.Loop() {
				tl, err := timeline.Read(s.home, "task_1")
				if err != nil {
					b.Fatal(err)
				}
				term.Draw(tl, 120)
			}
		})
		b.Run(fmt.Sprintf("page/%d", steps), func(b *testing.B) {
			for b.Loop() {
				s.forget()
				s.get(b, "/tasks/task_1")
			}
		})
		b.Run(fmt.Sprintf("again/%d", steps), func(b *testing.B) {
			s.get(b, "/tasks/task_1")
			for b.Loop() {
				s.get(b, "/tasks/task_1")
			}
		})
	}
}

// forget closes the server's open tasks.
func (s *site) forget() {
	ws := &s.page.watches
	for _, w := range ws.open {
		w.close()
	}
	ws.open = nil
}
