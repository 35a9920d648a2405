package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/client"
)

// usageError marks a mistake in how the command was called: exit code 2.
type usageError struct{ error }

// errSilent is a failure that has already been printed.
var errSilent = errors.New("failed")

// defaultServer is where the tools look for a node.
const defaultServer = "http://127.0.0.1:7330"

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "Counts what happened, exactly, over sliding windows",
		Long:          "Weir stores events and counts them exactly over sliding windows. Start with `weir demo`.",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          wrongUse(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("weir {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.PersistentFlags().StringP("output", "o", "text", "how data is printed: text or json")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if o := outputOf(cmd); o != "text" && o != "json" {
			return &usageError{fmt.Errorf("cannot print as %q: want -o text or -o json", o)}
		}
		return nil
	}
	root.AddCommand(newRun(), newDemo(), newCheck(), newSend(), newTail(), newCount(), newInfo(), newVersion())
	return root
}

// wrongUse makes a check of the arguments a usage error.
func wrongUse(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{fmt.Errorf("%w\nUsage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

func outputOf(cmd *cobra.Command) string {
	o, _ := cmd.Flags().GetString("output")
	return o
}

func wantsJSON(cmd *cobra.Command) bool { return outputOf(cmd) == "json" }

// addServerFlag gives cmd the flag that names the node; WEIR_SERVER is its default where set.
func addServerFlag(cmd *cobra.Command) {
	server := defaultServer
	if s := os.Getenv("WEIR_SERVER"); s != "" {
		server = s
	}
	cmd.Flags().String("server", server, "the node's HTTP address (environment: WEIR_SERVER)")
}

func clientOf(cmd *cobra.Command) (*client.Client, error) {
	server, _ := cmd.Flags().GetString("server")
	c, err := client.New(server)
	if err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
