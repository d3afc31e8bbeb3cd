// Package memory connects a task with the cards. It recalls cards, decides how far each may be
// trusted, and runs the passes that compact the context and write new cards.
package memory
