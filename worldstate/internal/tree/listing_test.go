package tree

import (
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestEqualBeneath: two directories count as equal only where their summaries leave no doubt.
func TestEqualBeneath(t *testing.T) {
	file := func(name string, perm uint32) Item {
		return Item{Name: name, State: State{Kind: KindFile, Perm: perm, Hash: gitfmt.Hash{1}}}
	}
	seal := func(items ...Item) *Node { return Seal(items, nil) }
	stored := file("x", 0o644)
	stored.Stored = StoredName("x")
	odd := seal(stored)
	for _, tt := range []struct {
		name string
		a, b *Node
		want bool
	}{
		{"one node", odd, odd, true},
		{"empty", seal(), seal(), true},
		{"equal", seal(file("a", 0o644), file("b", 0o755)), seal(file("a", 0o644), file("b", 0o755)), true},
		{"another name", seal(file("a", 0o644)), seal(file("b", 0o644)), false},
		{"another mode", seal(file("a", 0o644)), seal(file("a", 0o600)), false},
		{"more modes", seal(file("a", 0o644), file("b", 0o644)), seal(file("a", 0o644), file("b", 0o600)), false},
		{"modes that may be exchanged", seal(file("a", 0o644), file("b", 0o600)), seal(file("a", 0o644), file("b", 0o600)), false},
		{"stored by another name", odd, seal(stored), false},
		{"one stored by another name", odd, SealAs(odd.Tree, []Item{file("x", 0o644)}, nil), false},
		{"the other stored by another name", SealAs(odd.Tree, []Item{file("x", 0o644)}, nil), odd, false},
	} {
		if got := tt.a.equalBeneath(tt.b); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
