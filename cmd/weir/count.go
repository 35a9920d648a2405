package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/client"
)

func newCount() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "count COUNTER KEY...",
		Short: "Look a key up in a counter",
		Example: "  weir count seen u1 a9\n" +
			"  weir count seen u1 a9 --as-of 2026-11-30T12:00:00Z --window 1h",
		Args: wrongUse(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := clientOf(cmd)
			if err != nil {
				return err
			}
			asOf, _ := cmd.Flags().GetString("as-of")
			window, _ := cmd.Flags().GetString("window")
			raw, err := c.CountRaw(cmd.Context(), args[0], args[1:], asOf, window)
			if err != nil {
				return err
			}
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), raw)
			}
			return printCount(cmd.OutOrStdout(), raw)
		},
	}
	addServerFlag(cmd)
	cmd.Flags().String("as-of", "", "the instant to count at, ms since the epoch or RFC 3339 (default: now)")
	cmd.Flags().String("window", "", "one window only, named as in the configuration")
	return cmd
}

func printCount(w io.Writer, raw json.RawMessage) error {
	var count client.Count
	if err := json.Unmarshal(raw, &count); err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	names, err := windowOrder(raw)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s %s as of %s\n", count.Counter, strings.Join(count.Key, " "), instant(count.AsOf))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WINDOW\tCOUNT\tMAX\tEXACT")
	for _, name := range names {
		window := count.Windows[name]
		most := "unknown"
		if window.Max != nil {
			most = fmt.Sprint(*window.Max)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%t\n", name, window.Count, most, window.Exact)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if count.NextExpiry != nil {
		fmt.Fprintf(w, "next change by time alone: %s\n", instant(*count.NextExpiry))
	}
	if count.CompleteSince != nil {
		fmt.Fprintf(w, "complete since: %s\n", instant(*count.CompleteSince))
	}
	if count.Behind > 0 {
		fmt.Fprintf(w, "behind by %d events that were acknowledged but not yet counted\n", count.Behind)
	}
	return nil
}

// windowOrder returns the names of the windows in the order in which the node sent them.
func windowOrder(raw json.RawMessage) ([]string, error) {
	var outer struct {
		Windows json.RawMessage `json:"windows"`
	}
	if err := json.Unmarshal(raw, &outer); err != nil {
		return nil, fmt.Errorf("cannot read the answer: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(outer.Windows)))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("cannot read the windows of the answer: %w", err)
	}
	var names []string
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("cannot read the windows of the answer: %w", err)
		}
		name, _ := token.(string)
		names = append(names, name)
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			return nil, fmt.Errorf("cannot read window %q of the answer: %w", name, err)
		}
	}
	return names, nil
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
