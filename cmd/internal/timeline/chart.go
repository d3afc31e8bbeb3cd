package timeline

// Thin returns at most limit requests that represent all: if there are more, each is the
// largest of its share, so that no peak is lost, and the first and the last are kept. It
// returns the list itself if that is short enough.
func Thin(requests []Request, limit int) []Request {
	n := len(requests)
	if n <= limit || limit < 3 {
		return requests
	}
	out := make([]Request, 0, limit)
	out = append(out, requests[0])
	inner, shares := requests[1:n-1], limit-2
	for i := range shares {
		share := inner[i*len(inner)/shares : (i+1)*len(inner)/shares]
		largest := share[0]
		for _, r := range share[1:] {
			if r.Tokens > largest.Tokens {
				largest = r
			}
		}
		out = append(out, largest)
	}
	return append(out, requests[n-1])
}
