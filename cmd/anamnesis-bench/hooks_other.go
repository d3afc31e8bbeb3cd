//go:build unix && !linux

package main

import "github.com/spf13/cobra"

// hooksCommand is missing on other systems.
func hooksCommand() *cobra.Command { return &cobra.Command{Use: "hooks", Hidden: true} }
