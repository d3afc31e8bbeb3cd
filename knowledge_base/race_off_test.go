//go:build !race

package knowledgebase

const raceBuild = false
