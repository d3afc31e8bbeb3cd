package inspect

import (
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/taskdir"
)

// RecordedCalls reads the calls of a stream in dir, a task's folder, for loop.Detect: in the
// model's order, whether they ran or were refused, across jumps, and which of them jumped
// back.
func RecordedCalls(dir string) ([]loop.Recorded, error) {
	r, err := opstream.OpenReader(dir, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var calls []loop.Recorded
	jump := asked{calls: make(map[string]int), call: -1}
	open := make(map[string]int)    // calls by id
	results := make(map[uint64]int) // and by the seq of their result
	err = taskdir.EachDecoded(r.Since(0), func(o op.Op) error {
		if back := jump.back(o); back != nil {
			calls[jump.call].Back = back
		}
		switch b := o.Body.(type) {
		case *op.ModelReplied:
			for _, c := range b.Calls {
				open[c.ID], jump.calls[c.ID] = len(calls), len(calls)
				calls = append(calls, loop.Recorded{Tool: c.Name, Args: c.Args, Seq: o.Seq})
			}
		case *op.ToolCalled:
			if i, ok := open[b.Call]; ok {
				calls[i].Args, calls[i].World, calls[i].Effects, calls[i].Seq = b.Args, b.World, b.Effects, o.Seq // the user may have edited them
			}
		case *op.ToolReturned:
			i, ok := open[b.Call]
			if !ok {
				break
			}
			delete(open, b.Call)
			results[o.Seq] = i
			c := &calls[i]
			c.Result, c.Failed = notice.WithoutReminder(b), b.IsError || b.Exit != nil && *b.Exit != 0
			if earlier, known := results[b.Repeats]; known && b.Refused {
				c.World = calls[earlier].World // as the guard found
			}
		}
		return nil
	})
	return calls, err
}

// asked is the agent's pending jump or D-Mail in a recorded stream.
type asked struct {
	calls map[string]int // the model's calls by id, the last of each
	call  int            // index of the call that requested it; -1 if none is pending
	seq   uint64
}

// back applies an operation. It returns the jump back that the operation completed, or that
// the loop guard held back. It is nil for forward jumps and those of a user.
func (a *asked) back(o op.Op) *loop.Back {
	switch b := o.Body.(type) {
	case *op.JumpRequested:
		i, ok := a.calls[b.Call]
		if a.call, a.seq = i, o.Seq; !ok || b.By != op.ByAgent {
			a.call = -1
		}
		return nil
	case *op.JumpDropped:
		a.call = -1
		return nil
	}
	if a.call < 0 {
		return nil
	}
	switch b := o.Body.(type) {
	case *op.JumpIntended:
		if b.Backward {
			return &loop.Back{To: b.To, Seq: o.Seq}
		}
	case *op.MailDelivered:
		return &loop.Back{To: b.To, Seq: o.Seq}
	case *op.ReflectAsked:
		return &loop.Back{To: b.To, Seq: a.seq}
	case *op.ReflectFailed:
		return &loop.Back{To: b.To, Seq: a.seq}
	}
	return nil
}
