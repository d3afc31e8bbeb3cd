package model_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"anamnesis/orchestrator/model"
)

// failing gives its faults one after the other, then replies.
type failing struct {
	faults []error
	asked  int
}

func (f *failing) Name() string { return "failing" }

func (f *failing) Ask(_ context.Context, _ model.Request, on func(model.Delta)) (model.Reply, error) {
	f.asked++
	if on != nil {
		on(model.Delta{Text: "hal"})
	}
	if len(f.faults) > 0 {
		err := f.faults[0]
		f.faults = f.faults[1:]
		return model.Reply{}, err
	}
	return model.Reply{Text: "hal", Finish: "stop"}, nil
}

func busy(after time.Duration) error {
	return &model.Fault{Kind: model.FaultHTTP, Status: 429, Retryable: true, RetryAfter: after, Err: errors.New("busy")}
}

// clock records the waits and takes no time.
type clock struct{ waits []time.Duration }

func (c *clock) sleep(_ context.Context, d time.Duration) error {
	c.waits = append(c.waits, d)
	return nil
}

func TestRetry(t *testing.T) {
	permanent := &model.Fault{Kind: model.FaultRefused, Status: 401, Err: errors.New("no")}
	s := time.Second
	tests := []struct {
		name   string
		faults []error
		asked  int
		waits  []time.Duration
		ok     bool
	}{
		{"at once", nil, 1, nil, true},
		{"after two", []error{busy(0), busy(0)}, 3, []time.Duration{s / 4, s / 2}, true},
		{"given up", []error{busy(0), busy(0), busy(0), busy(0), busy(0)}, 5, []time.Duration{s / 4, s / 2, s, 2 * s}, false},
		{"not retryable", []error{permanent}, 1, nil, false},
		{"not retryable later", []error{busy(0), permanent}, 2, []time.Duration{s / 4}, false},
		{"not a fault", []error{errors.New("odd")}, 1, nil, false},
		{"retry after", []error{busy(9 * s)}, 2, []time.Duration{9 * s}, true},
		{"retry after shorter than ours", []error{busy(time.Millisecond)}, 2, []time.Duration{s / 4}, true},
		{"retry after the longest", []error{busy(model.DefaultMaxRetryAfter)}, 2, []time.Duration{model.DefaultMaxRetryAfter}, true},
		{"retry after too long", []error{busy(model.DefaultMaxRetryAfter + 1)}, 1, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c clock
			var attempts []model.Attempt
			m := &failing{faults: tt.faults}
			last := error(nil)
			if n := len(tt.faults); n > 0 {
				last = tt.faults[n-1]
			}
			reply, err := model.Retry(m, &model.RetryOptions{
				Sleep:   c.sleep,
				Rand:    func() float64 { return 0.5 },
				OnRetry: func(a model.Attempt) { attempts = append(attempts, a) },
			}).Ask(t.Context(), model.Request{}, nil)
			if m.asked != tt.asked || !reflect.DeepEqual(c.waits, tt.waits) {
				t.Errorf("asked %d times, waited %v; want %d, %v", m.asked, c.waits, tt.asked, tt.waits)
			}
			for i, a := range attempts {
				if a.Try != i+1 || a.Of != model.DefaultMaxTries || a.Wait != tt.waits[i] || a.Fault.Tries != a.Try {
					t.Errorf("report %d is %+v", i, a)
				}
			}
			if len(attempts) != len(tt.waits) {
				t.Errorf("%d reports for %d waits", len(attempts), len(tt.waits))
			}
			if tt.ok {
				if err != nil || reply.Text != "hal" {
					t.Errorf("reply %+v, %v", reply, err)
				}
				return
			}
			var f *model.Fault
			if !errors.As(err, &f) || f.Tries != tt.asked {
				t.Fatalf("error %#v; want a fault after %d tries", err, tt.asked)
			}
			if given, ok := errors.AsType[*model.Fault](last); ok && given.Tries != 0 {
				t.Error("the model's own fault was changed")
			}
		})
	}
}

// TestAskedOnce: a request that is made once is not made again, whatever its fault.
func TestAskedOnce(t *testing.T) {
	var c clock
	m := &failing{faults: []error{busy(0)}}
	_, err := model.Retry(m, &model.RetryOptions{Sleep: c.sleep}).Ask(t.Context(), model.Request{Once: true}, nil)
	if m.asked != 1 || len(c.waits) > 0 || model.AsFault(err).Tries != 1 {
		t.Errorf("asked %d times, waited %v, %v", m.asked, c.waits, err)
	}
}

func TestRetryWaitsAreBounded(t *testing.T) {
	for _, base := range []time.Duration{0, 7 * time.Minute, 1000 * time.Hour} {
		t.Run(base.String(), func(t *testing.T) { waitsAreBounded(t, base) })
	}
}

func waitsAreBounded(t *testing.T, base time.Duration) {
	var c clock
	var faults []error
	for range 80 {
		faults = append(faults, busy(0))
	}
	_, err := model.Retry(&failing{faults: faults}, &model.RetryOptions{
		MaxTries: 81, BaseDelay: base, Sleep: c.sleep, Rand: func() float64 { return 1 },
	}).Ask(t.Context(), model.Request{}, nil)
	if err != nil || len(c.waits) != 80 {
		t.Fatalf("%v after %d waits", err, len(c.waits))
	}
	for i, d := range c.waits {
		if d <= 0 || d > model.DefaultMaxDelay || i > 0 && d < c.waits[i-1] {
			t.Errorf("wait %d is %v", i, d)
		}
	}
}

func TestRetryAnnouncesRestart(t *testing.T) {
	var c clock
	var got []model.Delta
	_, err := model.Retry(&failing{faults: []error{busy(0)}}, &model.RetryOptions{Sleep: c.sleep}).
		Ask(t.Context(), model.Request{}, func(d model.Delta) { got = append(got, d) })
	want := []model.Delta{{Text: "hal"}, {Restart: true}, {Text: "hal"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestRetryStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &failing{faults: []error{busy(time.Minute), busy(0)}}
	_, err := model.Retry(m, &model.RetryOptions{OnRetry: func(model.Attempt) { cancel() }}).Ask(ctx,
		model.Request{}, nil)
	f := model.AsFault(err)
	if m.asked != 1 || f.Kind != model.FaultCanceled || !errors.Is(err, context.Canceled) || f.Tries != 1 {
		t.Errorf("asked %d times, %+v", m.asked, f)
	}
}

// interrupted ends the context while it is asked.
type interrupted struct{ cancel context.CancelFunc }

func (interrupted) Name() string { return "interrupted" }

func (m interrupted) Ask(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
	m.cancel()
	return model.Reply{}, busy(0)
}

func TestRetryReportsNoRetryThatWillNotCome(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := model.Retry(interrupted{cancel}, &model.RetryOptions{
		OnRetry: func(a model.Attempt) { t.Errorf("reported %+v", a) },
	}).Ask(ctx, model.Request{}, nil)
	if err == nil {
		t.Error("no error")
	}
}

func TestFaultText(t *testing.T) {
	cause := errors.New("slow down")
	for _, tt := range []struct {
		fault model.Fault
		want  string
	}{
		{model.Fault{Kind: model.FaultHTTP, Status: 429, Tries: 5, Err: cause}, "model: http (status 429): slow down (after 5 tries)"},
		{model.Fault{Kind: model.FaultCut, Tries: 1, Err: cause}, "model: reply cut off: slow down"},
		{model.Fault{Kind: model.FaultOverflow, Err: cause}, "model: context overflow: slow down"},
		{model.Fault{Kind: model.FaultTimeout}, "model: timeout"},
	} {
		if got := tt.fault.Error(); got != tt.want {
			t.Errorf("%q; want %q", got, tt.want)
		}
	}
	if f := model.AsFault(context.DeadlineExceeded); f.Kind != model.FaultCanceled {
		t.Errorf("a context's end is a fault of kind %s", f.Kind)
	}
	if model.AsFault(nil) != nil {
		t.Error("no error is a fault")
	}
}
