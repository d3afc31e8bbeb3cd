package knowledgebase_test

import (
	"context"
	"fmt"
	"log"
	"os"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// A card is put and found again by other words of the same trouble.
func Example() {
	dir, err := os.MkdirTemp("", "cards")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := knowledgebase.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ctx := context.Background()
	_, created, err := store.Put(ctx, &card.Card{
		ID:         card.NewID("leap_years", "calendar.sh"), // the same parts make the same id again
		Topic:      "calendar.sh is generated",
		SourceTask: "leap_years",
		Issue:      []string{"An edit of calendar.sh is lost"},
		Solution:   []string{"Edit calendar.in; the test copies it"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("created:", created)

	hits, err := store.Search(ctx, knowledgebase.Query{Text: "my edit of calendar.sh was lost"})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range hits {
		fmt.Println(hit.Card.State, hit.Card.Topic)
	}
	// Output:
	// created: true
	// draft calendar.sh is generated
}
