// Package dream looks for cards of different tasks that say one thing about
// different places, and proposes one general card for them. A proposal is a draft that
// names its instances; it takes no card's place, and no task is shown it, until a
// user says so. It is the abstraction step of DreamCoder's sleep (Ellis and others, 2021),
// done with cards in place of programs.
package dream
