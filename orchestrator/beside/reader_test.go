package beside_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	assets "anamnesis"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
)

// slow is a model that answers once it may; nil: never.
type slow struct{ asked, may chan struct{} }

func (m *slow) Name() string { return "slow" }

func (m *slow) Ask(ctx context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	m.asked <- struct{}{}
	select {
	case <-m.may:
		return model.Reply{
			Finish: "stop",
			Text:   `{"failure_causes":[],"falsified":[],"findings":[],"verified":[],"untried":["Look first."],"advice":["Look first."],"cards":[]}`,
		}, nil
	case <-ctx.Done():
		return model.Reply{}, &model.Fault{Kind: model.FaultCanceled, Tries: 1, Err: ctx.Err()}
	}
}

// TestReader: a pass of a recorder and of a jump asks the user's model; the next event ends
// the request, and the extractor writes. The end of the session does not.
func TestReader(t *testing.T) {
	for _, tt := range []struct {
		next, writer, fallback string
	}{{"UserPromptSubmit", "extractor", "canceled"}, {"SessionEnd", "model", ""}} {
		t.Run(tt.next, func(t *testing.T) {
			a := newAgent(t)
			m := &slow{make(chan struct{}), make(chan struct{})}
			home := filepath.Dir(a.svc.Home.State)
			svc, err := session.New(session.Options{Getenv: func(name string) string {
				return map[string]string{"HOME": home, "ANAMNESIS_HOME": a.svc.Home.State}[name]
			}, EAS: assets.EAS,
				Reader: func(context.Context, float64) (model.Model, int, error) { return m, 8000, nil }})
			if err != nil {
				t.Fatal(err)
			}
			a.svc = svc
			a.recorded("test", time.Hour)
			a.hook("UserPromptSubmit", map[string]any{"prompt": "p"})
			a.ok("t1", "make", func() {})
			a.ok("t2", "touch a", func() { a.write("a", "a") })
			if _, err := beside.Jump(t.Context(), svc, a.task, "", op.JumpRequested{To: 1, Reason: "it was the wrong file to write"}, session.Client{}); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				a.hook("Stop", nil)
			}()
			<-m.asked
			impatient, usual := *a, *a.recorders
			usual.Wait = 0 // as agents do, it does not wait for the pass
			impatient.recorders = &usual
			impatient.hook(tt.next, map[string]any{"prompt": "q"})
			close(m.may)
			<-done
			a.hook("SessionEnd", nil)
			var pass *op.PassDone
			if err := svc.Ops(a.task, 0, func(o op.Op) error {
				if b, ok := o.Body.(*op.PassDone); ok {
					pass = b
				}
				return nil
			}); err != nil || pass == nil || pass.Writer != tt.writer || !strings.Contains(pass.Fallback, tt.fallback) {
				t.Errorf("pass %+v, %v, want one by the %s", pass, err, tt.writer)
			}
		})
	}
}
