package vectors

import "context"

// Embedder turns texts into vectors, all of one size. It must be safe for
// concurrent use.
type Embedder interface {
	// Fingerprint names the model and everything else the vectors depend on.
	Fingerprint() string
	// EmbedCards returns one vector a text, in order. A zero vector says that
	// nothing is known of the text.
	EmbedCards(ctx context.Context, texts []string) ([][]float32, error)
	// EmbedQuery returns the vector to compare the cards' vectors with.
	EmbedQuery(ctx context.Context, text string) ([]float32, error)
}
