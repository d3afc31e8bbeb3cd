package replica

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"math/rand/v2"

	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
)

// TestSend: senders at once get numbers of their own without a gap, also if answers are lost, and each message is there
// once.
func TestSend(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "sealed": bytes.Repeat([]byte("k"), bucket.KeyBytes)} {
		t.Run(name, func(t *testing.T) {
			plain := shared(t, key)
			b := &flaky{Bucket: plain, rng: rand.New(rand.NewPCG(1, 2))}
			const senders = 16
			var group sync.WaitGroup
			for i := range senders {
				group.Go(func() {
					m := Message{Task: testTask, By: "ann", Command: taskdir.Command{Verb: "say", Text: fmt.Sprint(i)}}
					if _, err := Send(context.Background(), b, 0, m); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			var got []string
			read := func(after uint64) (last uint64) {
				err := ReadInbox(context.Background(), plain, testTask, after, func(m Message, bad error) error {
					got, last = append(got, m.Command.Text), m.N
					return bad
				})
				if err != nil {
					t.Error(err)
				}
				return last
			}
			if last := read(0); last != senders {
				t.Errorf("the last message is %d", last)
			}
			if slices.Sort(got); len(slices.Compact(got)) != senders {
				t.Errorf("messages: %q", got)
			}
			if n, err := Send(context.Background(), plain, 3, Message{Task: testTask}); err != nil || n != senders+1 {
				t.Errorf("sent as %d, %v", n, err)
			}
			if got = nil; read(senders) != senders+1 || len(got) != 1 {
				t.Errorf("after %d: %q", senders, got)
			}
		})
	}
}

// TestBadMessages: what cannot be read has a reason, and what follows it is read.
func TestBadMessages(t *testing.T) {
	key := bytes.Repeat([]byte("k"), bucket.KeyBytes)
	b, other := shared(t, key), bytes.Repeat([]byte("o"), bucket.KeyBytes)
	ctx := context.Background()
	foreign, err := bucket.Open(b.String(), other, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	put := func(b bucket.Bucket, name, text string) {
		if err := b.Put(ctx, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put(foreign, inboxName(testTask, 1), `{"v":1}`)
	put(b, inboxName(testTask, 2), `{"v":2,"command":{"to":"not a number"}}`)
	put(b, inboxName(testTask, 3), `{"v":1,"task":"other","n":3}`)
	put(b, inboxName(testTask, 4),
		`{"v":1,"task":"`+testTask+`","n":4,"by":"`+strings.Repeat("x", maxMessageBytes)+`"}`)
	put(b, inboxName(testTask, 5), `null`)
	put(b, strings.TrimSuffix(inboxName(testTask, 5), "5")+"x", `{}`)
	if n, err := Send(ctx, b, 0, Message{Task: testTask, By: "ann"}); err != nil || n != 6 {
		t.Fatalf("sent as %d, %v", n, err)
	}
	want := []string{"key", "newer", "another task", "too large", "damaged", ""}
	err = ReadInbox(ctx, b, testTask, 0, func(m Message, bad error) error {
		if text := want[m.N-1]; bad == nil != (text == "") || bad != nil && !strings.Contains(bad.Error(), text) {
			t.Errorf("message %d: %v, want %q", m.N, bad, text)
		}
		want[m.N-1] = "read"
		return nil
	})
	if err != nil || slices.ContainsFunc(want, func(s string) bool { return s != "read" }) {
		t.Errorf("%v, %q", err, want)
	}
}
