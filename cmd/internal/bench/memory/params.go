package memory

import "fmt"

// Params are the numbers of World B and of its agent. They were committed
// before the first result and are not fitted to one.
type Params struct {
	Deep bool // dead ends 5 to 30 steps deep, not 1 to 3

	Decisions int // in sequence, each needs the right option
	Options   int // of a decision, one of them right
	// Garden is the probability that a wrong option of any decision but the last
	// is a garden path.
	Garden float64
	// Hint is the probability that a task shows, in the output of one of its dead
	// ends, which two options of the last decision are worth trying.
	Hint float64
	// Licence is the probability that the first decision's options need an
	// activation outside the directory.
	Licence     float64
	Activations int // a task may make; one more locks it for good

	Bare bool // errors do not name the state they hold for

	OutputTokens [2]int // of a command, least and most

	// Compliance is the probability that the agent avoids an option it recalls
	// to have failed in the present state. Recorded models repeat a failed call
	// that they can see in 4 to 27 % of cases; in the tau-bench runs this bench
	// reads, gpt-4o repeats 22 % of them to the letter.
	Compliance float64
	// Care is the probability that the agent, writing down a failure in its own
	// words, says in which state it happened.
	Care float64
	// Whim is how much of the agent's preference among options is a new draw each
	// time and not a habit.
	Whim float64

	EAS    int // of the model, tokens
	Window int // of the model, tokens

	MaxSteps int // of a task
	// Budget of a task in tokens, priced as MaxBudget says.
	Budget int
}

// The prices of tokens beside one uncached prompt token, as with the large
// providers' list prices: a cached one costs a tenth, one of output five.
const (
	cachedPrice = 0.1
	outputPrice = 5.0
)

// Defaults are the parameters of the headline row: deep worlds, compliance
// 0.85, a model of EAS 16k with a window of 128k.
func Defaults() Params {
	return Params{
		Deep: true, Decisions: 2, Options: 4, Garden: 0.35, Hint: 0.5, Licence: 0.5, Activations: 3,
		OutputTokens: [2]int{80, 900}, Compliance: 0.85, Care: 0.8, Whim: 0.5,
		EAS: 16_000, Window: 128_000, MaxSteps: 200, Budget: 500_000,
	}
}

// depths are the least and the most steps of a dead end, and of a path that
// goes on.
func (p *Params) depths() (dead, on [2]int) {
	if p.Deep {
		return [2]int{5, 30}, [2]int{3, 6}
	}
	return [2]int{1, 3}, [2]int{1, 2}
}

// Row is one row of the sweep.
type Row struct {
	Name   string
	Params Params
}

// headlines is how many rows of Sweep are played without `--sweep`.
const headlines = 3

// Sweep is the rows of `--sweep`: the headline, the flat worlds, errors without a
// state, and the corners of compliance, EAS and depth.
func Sweep() []Row {
	rows := []Row{
		{"deep, compliance 0.85, EAS 16k", Defaults()}, {"flat, compliance 0.85, EAS 16k", with(func(p *Params) { p.Deep = false })},
		{"deep, compliance 0.85, EAS 16k, errors that do not name their state", with(func(p *Params) { p.Bare = true })},
	}
	for _, deep := range []bool{true, false} {
		for _, eas := range []int{4_000, 64_000} {
			for _, compliance := range []float64{0.5, 0.95} {
				rows = append(rows, Row{rowName(deep, compliance, eas), with(func(p *Params) { p.Deep, p.EAS, p.Compliance = deep, eas, compliance })})
			}
		}
	}
	return rows
}

func with(change func(*Params)) Params {
	p := Defaults()
	change(&p)
	return p
}

func rowName(deep bool, compliance float64, eas int) string {
	world := "flat"
	if deep {
		world = "deep"
	}
	return fmt.Sprintf("%s, compliance %.2f, EAS %dk", world, compliance, eas/1000)
}
