//go:build unix

package frame

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Intervals of the renderer's ticks.
const (
	drawEvery = time.Second / 60
	restEvery = time.Second
	restAfter = time.Second // without a message
)

// Pace slows the renderer down while no message comes: its ticks would wake an idle process
// 60 times a second. The zero Pace is ready to use.
type Pace struct {
	mu      sync.Mutex
	ticker  *time.Ticker
	last    time.Time // when the last message came
	drawing bool      // the ticker runs at full speed
}

// tickerOf returns the ticker of a program that runs; nil if there is none. Bubble Tea has no
// option for an idle program, and keeps its ticker in a field.
func tickerOf(p *tea.Program) *time.Ticker {
	f := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !f.IsValid() || f.Type() != reflect.TypeFor[*time.Ticker]() {
		return nil
	}
	return (*time.Ticker)(f.UnsafePointer())
}

// Wake has the renderer draw at full speed, until no message has come for restAfter.
func (p *Pace) Wake(program *tea.Program) { p.wake(tickerOf(program)) }

func (p *Pace) wake(ticker *time.Ticker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	if ticker == nil || p.drawing {
		return
	}
	p.ticker, p.drawing = ticker, true
	ticker.Reset(drawEvery)
	time.AfterFunc(restAfter, p.rest)
}

func (p *Pace) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if idle := time.Since(p.last); idle < restAfter {
		time.AfterFunc(restAfter-idle, p.rest)
		return
	}
	p.drawing = false
	p.ticker.Reset(restEvery)
}
