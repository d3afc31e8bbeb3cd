package depot

// Params are the numbers of a world.
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
}

// depths are the least and the most steps of a dead end, and of a path that
// leads on.
func (p *Params) depths() (dead, on [2]int) {
	if p.Deep {
		return [2]int{5, 30}, [2]int{3, 6}
	}
	return [2]int{1, 3}, [2]int{1, 2}
}
