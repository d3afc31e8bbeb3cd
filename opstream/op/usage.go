package op

// Usage counts what model calls consumed, in the provider's tokens.
type Usage struct {
	Prompt     int `json:"prompt"`
	Cached     int `json:"cached,omitempty"` // of Prompt
	Completion int `json:"completion"`
	Reasoning  int `json:"reasoning,omitempty"` // of Completion
	// USD is the cost of Priced of the tokens, in US dollars, by the prices known at the time;
	// the price of the others is unknown.
	USD    float64 `json:"usd,omitempty"`
	Priced int     `json:"priced,omitempty"`
}

// Tokens returns the sum of prompts and replies.
func (u Usage) Tokens() int { return u.Prompt + u.Completion }

// Unpriced returns the number of tokens without a known price.
func (u Usage) Unpriced() int { return u.Tokens() - u.Priced }

// Plus returns the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Prompt: u.Prompt + v.Prompt, Cached: u.Cached + v.Cached, Completion: u.Completion + v.Completion,
		Reasoning: u.Reasoning + v.Reasoning, USD: u.USD + v.USD, Priced: u.Priced + v.Priced,
	}
}

// Minus returns the usage since an earlier count.
func (u Usage) Minus(v Usage) Usage {
	return Usage{
		Prompt: u.Prompt - v.Prompt, Cached: u.Cached - v.Cached, Completion: u.Completion - v.Completion,
		Reasoning: u.Reasoning - v.Reasoning, USD: max(u.USD-v.USD, 0), Priced: u.Priced - v.Priced,
	}
}
