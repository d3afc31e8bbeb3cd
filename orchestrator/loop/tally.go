package loop

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// How often the same call may be made in the same world.
const (
	RemindAt = 2 // it runs, with a reminder of the earlier result
	BlockAt  = 3 // it does not run
)

// StreakBlockAt is the repetition in a row at which a call does not run, even if it changed the world.
const StreakBlockAt = 12

// RemindsStreak reports whether that many runs of the same call in a row deserve a reminder.
func RemindsStreak(times int) bool { return times == 3 || times == 5 || times == 8 }

// JumpAt is the agent's jump back to one step that first needs a strategy.
const JumpAt = 4

const (
	maxTallied = 16_384 // calls remembered; then the older half is forgotten
	maxEffects = 4_096  // effects remembered; then all count as new again
)

// Key identifies a call: its world, its tool, and its arguments in canonical form. It is eight
// bytes of a hash: two of the calls a Tally remembers share one with a chance of 1 in 10^11,
// and then one counts as a repetition of the other.
type Key uint64

func KeyOf(world, tool, args string) Key {
	sum := sha256.Sum256([]byte(world + "\x00" + tool + "\x00" + op.CanonicalArgs(args)))
	return Key(binary.BigEndian.Uint64(sum[:]))
}

type Run struct {
	Seq    uint64 // of its result
	Failed bool   `json:",omitempty"`
}

// Tally counts calls that repeat in an unchanged world. The zero Tally is empty. It is plain
// data: its fields are exported for storage.
type Tally struct {
	// Runs are each call's runs that may count, oldest first, at most BlockAt.
	Runs map[Key][]Run `json:",omitempty"`
	// Epoch counts possible changes of the world that its id does not show: commands that ran
	// for the first time in this world and are not known to only read.
	Epoch   int          `json:",omitempty"`
	Effects map[Key]bool `json:",omitempty"`
}

type Call struct {
	World   string // tree id; empty if unknown: then nothing is counted
	Tool    string
	Args    string
	Effects bool // it may change what the world id does not cover
}

// key returns a call's key in the present world, including ignored files.
func (t *Tally) key(c Call) Key {
	epoch := make([]byte, 0, 8)
	for n := t.Epoch; n > 0; n >>= 8 {
		epoch = append(epoch, byte(n))
	}
	return KeyOf(c.World+"+"+string(epoch), c.Tool, c.Args)
}

// Earlier returns the runs of the same call in the same world that count against it: those
// that failed, and those whose result, as visible reports, the agent still sees.
func (t *Tally) Earlier(c Call, visible func(seq uint64) bool) []Run {
	return slices.DeleteFunc(slices.Clone(t.Runs[t.key(c)]), func(r Run) bool { return !counts(r, visible) })
}

func counts(r Run, visible func(seq uint64) bool) bool { return r.Failed || visible(r.Seq) }

func (t *Tally) Add(c Call, r Run) {
	if c.World != "" {
		t.addRun(t.key(c), r)
	}
	if c.Effects && !r.Failed {
		k := KeyOf(c.World, c.Tool, c.Args)
		if t.Effects[k] {
			return // it did that before: a repetition changes nothing
		}
		if t.Effects == nil || len(t.Effects) >= maxEffects {
			t.Effects = make(map[Key]bool)
		}
		t.Effects[k] = true
		t.Epoch++
	}
}

func (t *Tally) addRun(k Key, r Run) {
	if t.Runs == nil {
		t.Runs = make(map[Key][]Run)
	}
	// Two are enough to block the third; of more, the last are the ones to show.
	runs := append(t.Runs[k], r)
	t.Runs[k] = runs[max(0, len(runs)-BlockAt):]
	if len(t.Runs) <= maxTallied {
		return
	}
	var lasts []uint64
	for _, runs := range t.Runs {
		lasts = append(lasts, runs[len(runs)-1].Seq)
	}
	slices.Sort(lasts)
	middle := lasts[len(lasts)/2]
	maps.DeleteFunc(t.Runs, func(_ Key, runs []Run) bool { return runs[len(runs)-1].Seq < middle })
}

// Prune forgets successful runs whose results have left the context: they no longer count.
func (t *Tally) Prune(visible func(seq uint64) bool) {
	for k, runs := range t.Runs {
		if runs = slices.DeleteFunc(runs, func(r Run) bool { return !counts(r, visible) }); len(runs) > 0 {
			t.Runs[k] = runs
		} else {
			delete(t.Runs, k)
		}
	}
	if len(t.Runs) == 0 {
		t.Runs = nil
	}
}

// Pattern names calls that repeat on purpose, to wait for something outside the world.
type Pattern struct {
	Tool string
	// Command, if not empty, is a pattern of the `command` argument; * matches any text.
	Command string
}

// Polling is the built-in list of such calls.
func Polling() []Pattern {
	list := []Pattern{{Tool: "TaskOutput"}, {Tool: "TaskList"}}
	for _, command := range []string{
		"sleep *", "* sleep *", "wait", "wait *", "date", "date *", "ps", "ps *", "pgrep *", "ss *", "tail *",
		"curl *localhost*", "curl *127.0.0.1*", "wget *localhost*", "wget *127.0.0.1*", "nc -z *",
		"docker ps", "docker ps *", "docker logs *", "docker inspect *", "kubectl get *", "kubectl logs *",
		"kubectl describe *", "kubectl rollout status *",
		"gh run *", "gh pr checks", "gh pr checks *", "systemctl status *", "systemctl is-active *",
	} {
		list = append(list, Pattern{Tool: "Bash", Command: command})
	}
	return list
}

func (p Pattern) Match(tool, args string) bool {
	return p.MatchCommand(tool, shell.Command(args))
}

// MatchCommand reports whether a tool's command fits the pattern.
func (p Pattern) MatchCommand(tool, command string) bool {
	return p.Tool == tool && (p.Command == "" || shell.Glob(p.Command, strings.TrimSpace(command)))
}

// Streak is a call repeated without any other in between, even if it changed the world. It is
// plain data.
type Streak struct {
	Key   Key
	Times int
}

func (s Streak) After(tool, args string) Streak {
	k := KeyOf("", tool, args)
	if k == s.Key {
		return Streak{k, s.Times + 1}
	}
	return Streak{k, 1}
}
