package op

// Usage counts what model calls consumed, in the provider's tokens.
type Usage struct {
	Prompt     int `json:"prompt"`
	Cached     int `json:"cached,omitempty"` // of Prompt
	Completion int `json:"completion"`
	Reasoning  int `json:"reasoning,omitempty"` // of Completion
	// USD is what Priced of the tokens cost, in US dollars, by the prices known when
	// they were used; the price of the others is not known.
	USD    float64 `json:"usd,omitempty"`
	Priced int     `json:"priced,omitempty"`
}

// Tokens are all of them, prompts and replies together.
func (u Usage) Tokens() int { return u.Prompt + u.Completion }

// Unpriced are the tokens whose price was not known.
func (u Usage) Unpriced() int { return u.Tokens() - u.Priced }

// Plus is what was used together.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Prompt: u.Prompt + v.Prompt, Cached: u.Cached + v.Cached, Completion: u.Completion + v.Completion, Reasoning: u.Reasoning + v.Reasoning,
		USD: u.USD + v.USD, Priced: u.Priced + v.Priced,
	}
}

// Minus is what was used between an earlier count and this one.
func (u Usage) Minus(v Usage) Usage {
	return Usage{
		Prompt: u.Prompt - v.Prompt, Cached: u.Cached - v.Cached, Completion: u.Completion - v.Completion, Reasoning: u.Reasoning - v.Reasoning,
		USD: max(u.USD-v.USD, 0), Priced: u.Priced - v.Priced,
	}
}
